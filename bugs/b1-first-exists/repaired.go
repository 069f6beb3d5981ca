package b1

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// eachForItself creates each secret that is missing.
//
// RIGHT: the function checks both secrets in every reconcile.
func eachForItself(ctx context.Context, k child.Keeper, db *Database) (bool, error) {
	all := true
	for _, suffix := range []string{"-ssl", "-ssl-internal"} {
		there, err := secret(ctx, k, db, suffix)
		if err != nil {
			return false, err
		}
		all = all && there
	}
	return all, nil
}
