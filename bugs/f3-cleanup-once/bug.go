package f3

import (
	"context"
	"fmt"
)

// dropOnce is the bug of movetokube/postgres-operator#35: the role is dropped, and
// before the finalizer is off there is a conflict or a crash. The next time there
// is no role to drop, which is an error, every time from then on.
func (r *reconciler) dropOnce(ctx context.Context, a *Account) (bool, error) {
	if err := r.Delete(ctx, role(a)); err != nil {
		return false, fmt.Errorf("dropping the role of %s: %w", a.Name, err)
	}
	return true, nil
}
