package n2

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// eachForItself creates each lease that is missing.
//
// RIGHT: the function checks both leases in every reconcile.
func eachForItself(ctx context.Context, k child.Keeper, tenancy *Tenancy) error {
	for _, room := range []string{"flat", "cellar"} {
		if err := lease(ctx, k, tenancy, room); err != nil {
			return err
		}
	}
	return nil
}
