package a4

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// cachedImage is the image that the application has as far as the cache knows.
//
// WRONG: if the application was changed together with the invocation, the cache may
// have all of it as it was before, with a status that fits. The task runs the old
// image, and never another one. Taken from RedHatInsights/clowder#1760, where the
// commit that mends it (5463d620) calls such an object stale but consistent.
func cachedImage(ctx context.Context, k keep.Keeper, key client.ObjectKey) (string, error) {
	var app App
	if err := k.Get(ctx, key, &app); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if app.Status.Generation != app.Generation {
		return "", nil
	}
	return app.Status.Image, nil
}
