package controlplane

import (
	"context"
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

// Follow passes on what the store holds, and then every committed write, in
// order and without a gap: what no client of the API can have at this price, as
// a watch is of one kind and may skip states when it lags. The revision of a
// write is the resourceVersion of its object. It returns when ctx ends, or the
// plane. With somebody else's etcd it is refused.
func (p *Plane) Follow(ctx context.Context, pass func(revision int64, commits []storage.Commit)) error {
	if p.etcd == nil {
		return fmt.Errorf("following the store: %w", ErrForeignStore)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.tasks.ctx, func() { cancel(context.Cause(p.tasks.ctx)) })()
	return p.etcd.Follow(ctx, p.storePrefix(), pass)
}

// Revision is that of the last write to the store of the plane's own.
func (p *Plane) Revision(ctx context.Context) (int64, error) {
	if p.etcd == nil {
		return 0, ErrForeignStore
	}
	return p.etcd.Revision(ctx)
}
