package b2

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// once creates the secret and the set if there is no set.
//
// WRONG: if an attempt ends after the secret was created, every later attempt creates the
// secret again and fails because the secret already exists. The bug is taken from
// infinispan/infinispan-operator#203 and #217.
func once(ctx context.Context, k child.Keeper, grid *Grid) (bool, error) {
	set := setOf(grid)
	err := k.Get(ctx, client.ObjectKeyFromObject(set), set)
	if err == nil {
		return ensureBoth(ctx, k, grid)
	}
	if !apierrors.IsNotFound(err) {
		return false, err
	}
	if current, err := k.Current(ctx, grid); err != nil || !current {
		return false, err
	}
	secret := secretOf(grid)
	describeSecret(k, grid, secret)()
	if err := k.Create(ctx, secret); err != nil {
		return false, fmt.Errorf("creating the secret for %s: %w", grid.Name, err)
	}
	describeSet(k, grid, set)()
	if err := k.Create(ctx, set); err != nil {
		return false, fmt.Errorf("creating the set for %s: %w", grid.Name, err)
	}
	return true, nil
}
