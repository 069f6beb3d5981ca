package contract

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/koboshi-dev/koboshi/conformance/envtest/internal/assets"
)

// The environment of a run:
//
//	CONTRACT_ASSETS  the folder to test instead of Koboshi's, such as stock's
//	KOBOSHI          the binary whose folder is tested (default: bin/koboshi)
//	CONTRACT_SEED    the seed for the times at which processes are killed
//	CONTRACT_KILLS   the number of suites to kill while a server starts
//	CONTRACT_ROLE    set by the tests for the processes that they start
const (
	assetsVariable = "CONTRACT_ASSETS"
	roleVariable   = "CONTRACT_ROLE"
)

const (
	within       = 30 * time.Second
	pollInterval = 20 * time.Millisecond
)

// folder holds the programs under test.
var folder string

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	if err := setup(); err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		os.Exit(1)
	}
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role); err != nil {
			fmt.Fprintf(os.Stderr, "contract: as %s: %v\n", role, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// play plays the role for which a test has started this binary.
func play(role string) error {
	act, ok := roles[role]
	if !ok {
		return fmt.Errorf("no such role; only the tests may set %s", roleVariable)
	}
	return act()
}

func setup() (err error) {
	binary := os.Getenv("KOBOSHI")
	if binary == "" {
		binary = filepath.Join("..", "..", "..", "bin", "koboshi")
	}
	if folder, err = assets.Koboshi(context.Background(), os.Getenv(assetsVariable), binary); err != nil {
		return err
	}
	// These variables would make envtest use programs outside the folder.
	for _, name := range []string{"TEST_ASSET_ETCD", "TEST_ASSET_KUBE_APISERVER", "TEST_ASSET_KUBECTL", "USE_EXISTING_CLUSTER"} {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	return os.Setenv("KUBEBUILDER_ASSETS", folder)
}

// oursOnly marks a test of a promise that only Koboshi makes.
func oursOnly(t *testing.T) {
	t.Helper()
	if os.Getenv(assetsVariable) != "" {
		t.Skipf("only Koboshi makes this promise, but %s selects other programs", assetsVariable)
	}
}

// newEnvironment returns an environment whose timeouts are long enough for a busy
// machine.
func newEnvironment() *envtest.Environment {
	return &envtest.Environment{ControlPlaneStartTimeout: 3 * time.Minute}
}

// start starts an environment, and stops it when the test ends. The test fails if the start
// or the stop fails.
func start(t *testing.T, changes ...func(*envtest.Environment)) *envtest.Environment {
	t.Helper()
	env := newEnvironment()
	for _, change := range changes {
		change(env)
	}
	_, err := env.Start()
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	return env
}

// with sets a flag of kube-apiserver.
func with(flag string, values ...string) func(*envtest.Environment) {
	return func(env *envtest.Environment) { env.ControlPlane.GetAPIServer().Configure().Set(flag, values...) }
}

func clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits until the condition holds. On a timeout it reports the last error.
func eventually(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, within, true, func(ctx context.Context) (bool, error) {
		err := condition(ctx)
		// A timeout explains less than the error that came before it.
		if err == nil || ctx.Err() == nil || last == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not within %v: %v", what, within, last)
	}
}

// reachable checks that a client can read an object that every cluster has.
func reachable(ctx context.Context, c kubernetes.Interface) error {
	_, err := c.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	return err
}
