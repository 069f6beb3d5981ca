package envtest

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/koboshi-dev/koboshi/internal/controlplane/apiserver"
	"github.com/koboshi-dev/koboshi/internal/controlplane/useragent"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
	"github.com/koboshi-dev/koboshi/internal/memory"
)

// KubernetesVariable names the environment variable with the minor version that the API
// server and its controllers emulate. By default, they do not emulate another version.
const KubernetesVariable = "KOBOSHI_KUBERNETES"

const readyPoll = 20 * time.Millisecond

// runAPIServer runs the program kube-apiserver. fresh reports whether this program is the
// only one that has written to the server's etcd. shortcut gives access to an etcd in
// this process.
func runAPIServer(ctx context.Context, args []string, fresh bool, shortcut *apiserver.Shortcut) int {
	profile, err := chosen()
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		return exitError
	}
	// Claim sets the user agent of the clients that upstream code makes.
	useragent.Claim(apiserverName)
	if profile.RunsManager() {
		useragent.Claim(managerName)
	}
	if args, err = kubeversion.Emulating(args, os.Getenv(KubernetesVariable)); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "Error: %s: %v\n", KubernetesVariable, err)
		return exitError
	}
	b := beside{profile: profile, args: args, tokens: newTokens()}
	return apiserver.Command{
		Surroundings: apiserver.Surroundings{
			OwnStore:  fresh,
			UserAgent: useragent.Of(apiserverName),
			Shortcut:  shortcut,
			Users:     b.users(),
		},
		Args: args,
		Started: func(ctx context.Context, loopback *rest.Config) {
			if !ready(ctx, loopback) {
				return
			}
			if err := b.run(ctx, loopback); err != nil && ctx.Err() == nil {
				klog.ErrorS(err, "Controllers cannot run")
			}
			memory.Settle(ctx)
		},
	}.Run(ctx)
}

// ready waits until the server is ready, and returns false if the server never became ready.
func ready(ctx context.Context, loopback *rest.Config) bool {
	client, err := kubernetes.NewForConfig(loopback)
	if err != nil {
		return false
	}
	for ctx.Err() == nil {
		if _, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err == nil {
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(readyPoll):
		}
	}
	return false
}
