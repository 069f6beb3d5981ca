package b2

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// always creates the secret and the set if they are missing, and repairs them if they
// exist.
//
// RIGHT: each step can be repeated. An object that already exists is a success and not a
// failure.
func always(ctx context.Context, k child.Keeper, grid *Grid) (bool, error) {
	return ensureBoth(ctx, k, grid)
}
