package u1

import "context"

// oneByOne writes the primary, and then the replicas.
//
// WRONG: between the two writes, the new primary is also a replica, and the old primary has no role.
// Clients that only read are still sent to the new primary, and a program that sees this state may act
// on it. In CrunchyData/postgres-operator#1218, the Service of the primary selected both members after a failover,
// and in cloudnative-pg/cloudnative-pg#10403, it went on selecting the old one for a while.
func oneByOne(ctx context.Context, r *reconciler, db *Database) (bool, error) {
	if there, err := r.write(ctx, db, map[string]string{"primary": db.Spec.Primary}); err != nil || !there {
		return false, err
	}
	return r.write(ctx, db, map[string]string{"primary": db.Spec.Primary, "replicas": replicas(db.Spec.Primary)})
}
