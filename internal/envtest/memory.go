package envtest

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/envtest/shim"
)

// settleMemory is what the process does about its memory.
var settleMemory memory

type memory struct{}

const (
	// While the server starts nearly all that is allocated stays.
	startPercent = 200
	// Ten packages are tested at once on a machine with little memory.
	servePercent = 50

	readyPoll = 20 * time.Millisecond
)

func (memory) starting() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(startPercent)
	}
}

// whenReady gives back what only the start needed.
func (memory) whenReady(ctx context.Context, loopback *rest.Config) {
	client, err := kubernetes.NewForConfig(loopback)
	if err != nil {
		return
	}
	for ctx.Err() == nil {
		if _, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err == nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(readyPoll):
		}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(servePercent)
	}
	debug.FreeOSMemory()
	shim.GiveBackPages()
}
