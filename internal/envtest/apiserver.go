package envtest

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/controlplane/apiserver"
)

// runAPIServer is the program kube-apiserver. fresh says that nobody but this
// program has written to its etcd; shortcut leads to an etcd in this process.
func runAPIServer(ctx context.Context, args []string, fresh bool, shortcut *apiserver.Shortcut) int {
	return apiserver.Command{
		Args:     args,
		OwnStore: fresh,
		Shortcut: shortcut,
		Started: func(ctx context.Context, loopback *rest.Config) error {
			go settleMemory.whenReady(ctx, loopback)
			return nil
		},
	}.Run(ctx)
}
