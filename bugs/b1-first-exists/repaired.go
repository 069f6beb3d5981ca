package b1

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// eachForItself makes each secret that is missing.
//
// RIGHT: each of the two is looked at, every time.
func eachForItself(ctx context.Context, k keep.Keeper, db *Database) (bool, error) {
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
