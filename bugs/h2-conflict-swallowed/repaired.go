package h2

import "context"

// reportForSure returns a conflict like any other error, so the Source is
// reconciled again.
func (r *reconciler) reportForSure(ctx context.Context, s *Source) error {
	return r.Status().Update(ctx, s)
}
