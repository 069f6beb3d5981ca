package b6

import "context"

// forgetFirst removes the attempt from the status, and then the snapshot of the attempt. If the process is
// killed in between, nothing but the name of the attempt leads to the snapshot, and the name is lost. In
// velero-io/velero#8160, the first restart already marks an interrupted backup as failed without the
// snapshots that it has taken.
func forgetFirst(ctx context.Context, r *reconciler, b *Backup) error {
	attempt := b.Status.Attempt
	b.Status = Status{}
	if err := r.report(ctx, b); err != nil {
		return err
	}
	_, err := r.removeSnapshot(ctx, b, attempt)
	return err
}
