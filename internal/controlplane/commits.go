package controlplane

import (
	"context"
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

// Follow passes on the content of the store and then every committed write, in
// order and without a gap. No client of the API can have this at the same
// price: a watch covers one kind and may skip states when it lags. The revision
// of a write is the resourceVersion of its object. Follow returns when ctx or
// the plane ends. It refuses an external etcd.
func (p *Plane) Follow(ctx context.Context, pass func(revision int64, commits []storage.Commit)) error {
	if p.etcd == nil {
		return fmt.Errorf("following the store: %w", ErrForeignStore)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.tasks.ctx, func() { cancel(context.Cause(p.tasks.ctx)) })()
	return p.etcd.Follow(ctx, p.storePrefix(), pass)
}

// Revision returns the revision of the last write to the plane's own store.
func (p *Plane) Revision(ctx context.Context) (int64, error) {
	if p.etcd == nil {
		return 0, ErrForeignStore
	}
	return p.etcd.Revision(ctx)
}
