package b6

import "context"

// cleanUpFirst forgets an attempt only when its snapshot is gone. After an interruption, it begins again.
func cleanUpFirst(ctx context.Context, r *reconciler, b *Backup) error {
	if gone, err := r.removeSnapshot(ctx, b, b.Status.Attempt); err != nil || !gone {
		return err
	}
	b.Status = Status{}
	return r.report(ctx, b)
}
