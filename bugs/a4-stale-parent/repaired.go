package a4

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// freshImage is the image of the application that the server has.
//
// RIGHT: it is read from the server, as clowder does since then, and counts only if
// it was found out for the spec of now. If it was not, an event of the application
// will come.
func freshImage(ctx context.Context, k keep.Keeper, key client.ObjectKey) (string, error) {
	var app App
	if err := k.Live.Get(ctx, key, &app); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if app.Status.Generation != app.Generation {
		return "", nil
	}
	return app.Status.Image, nil
}
