package b2

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// always creates the secret and the set if they are missing, and repairs them if they
// exist.
//
// RIGHT: each step can be repeated. The function treats an object that already exists as a success,
// not as a failure.
func always(ctx context.Context, k child.Keeper, grid *Grid) (bool, error) {
	return ensureBoth(ctx, k, grid)
}
