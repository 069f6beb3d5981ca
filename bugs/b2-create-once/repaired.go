package b2

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// always makes each of the two if it is missing, and mends it if it is there.
//
// RIGHT: each step can be repeated. That something exists already is what was
// wanted and no failure.
func always(ctx context.Context, k keep.Keeper, grid *Grid) (bool, error) {
	return keepBoth(ctx, k, grid)
}
