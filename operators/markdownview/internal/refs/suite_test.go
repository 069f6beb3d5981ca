package refs

import (
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

var (
	config *rest.Config
	api    kubernetes.Interface
)

// envtest starts the control plane from the binaries in KUBEBUILDER_ASSETS. With
// USE_EXISTING_CLUSTER=true, the tests use the cluster in KUBECONFIG instead.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	logf.SetLogger(logr.Discard())
	env := &envtest.Environment{}
	var err error
	if config, err = env.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane:", err)
		return 1
	}
	defer func() { _ = env.Stop() }()
	config.QPS = -1 // the tests make many objects
	if api, err = kubernetes.NewForConfig(config); err != nil {
		fmt.Fprintln(os.Stderr, "creating a client:", err)
		return 1
	}
	return m.Run()
}
