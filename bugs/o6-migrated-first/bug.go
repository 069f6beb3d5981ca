package o6

import "context"

// reportedFirst sets the mark, and then removes the old ConfigMap.
//
// WRONG: if the process is killed after the mark is set, its successor does not remove the old ConfigMap.
// As in percona/percona-xtradb-cluster-operator#1043, one write is taken as proof of another; here, this
// happens only once, in an upgrade.
func (r *reconciler) reportedFirst(ctx context.Context, booth *Booth) error {
	if err := r.mark(ctx, booth); err != nil {
		return err
	}
	return r.removeOld(ctx, booth)
}
