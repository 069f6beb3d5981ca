package q3

import "context"

// statusFirst reports a pool as done, and then labels the Node.
//
// WRONG: if the process ends between the two writes, or the second one fails, the status
// says that the label is set, and the controller never sets it. As in percona/percona-xtradb-cluster-operator#1043,
// one write is taken as proof of another.
func statusFirst(ctx context.Context, r *reconciler, pool *Pool) error {
	if pool.Status.Generation == pool.Generation {
		return nil
	}
	if err := r.report(ctx, pool); err != nil {
		return err
	}
	return r.label(ctx, pool)
}
