package a4

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// freshImage returns the image of the application according to the server.
//
// RIGHT: the image is read from the server, as clowder has done since the fix, and is used
// only if it was determined for the current spec. If the image was determined for an
// earlier spec, another event of the application will follow.
func freshImage(ctx context.Context, k child.Keeper, key client.ObjectKey) (string, error) {
	var app App
	if err := k.Live.Get(ctx, key, &app); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if app.Status.Generation != app.Generation {
		return "", nil
	}
	return app.Status.Image, nil
}
