package u1

import "context"

// together writes the primary and the replicas with one request.
//
// RIGHT: each state that the ConfigMap ever has is consistent.
func together(ctx context.Context, r *reconciler, db *Database) (bool, error) {
	return r.write(ctx, db, map[string]string{"primary": db.Spec.Primary, "replicas": replicas(db.Spec.Primary)})
}
