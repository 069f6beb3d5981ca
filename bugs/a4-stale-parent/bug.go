package a4

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// cachedImage returns the image of the application according to the cache.
//
// WRONG: if the application was changed together with the invocation, the cache may still
// have the application as it was before the change, with a status that matches its old
// spec. A task created from the stale cache runs the old image permanently. The bug is
// taken from RedHatInsights/clowder#1760. The commit that fixes the bug (5463d620)
// describes an object with an old spec and a matching status as stale but consistent.
func cachedImage(ctx context.Context, k child.Keeper, key client.ObjectKey) (string, error) {
	var app App
	if err := k.Get(ctx, key, &app); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if app.Status.Generation != app.Generation {
		return "", nil
	}
	return app.Status.Image, nil
}
