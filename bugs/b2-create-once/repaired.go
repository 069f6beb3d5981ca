package b2

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// always creates each of the two if it is missing, and repairs it if it exists.
//
// RIGHT: each step can be repeated. An object that exists already is the goal, and not
// a failure.
func always(ctx context.Context, k child.Keeper, grid *Grid) (bool, error) {
	return ensureBoth(ctx, k, grid)
}
