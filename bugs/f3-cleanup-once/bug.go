package f3

import (
	"context"
	"fmt"
)

// dropOnce has the bug of movetokube/postgres-operator#35. The role is dropped, and then a
// conflict or a crash prevents the removal of the finalizer. Every later attempt fails,
// because there is no role to drop.
func (r *reconciler) dropOnce(ctx context.Context, a *Account) (bool, error) {
	if err := r.Delete(ctx, role(a)); err != nil {
		return false, fmt.Errorf("dropping the role of %s: %w", a.Name, err)
	}
	return true, nil
}
