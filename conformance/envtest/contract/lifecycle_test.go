package contract

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func TestAnEnvironmentStartsAndStopsTimeAfterTime(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 10
	}
	var longest time.Duration
	for round := range rounds {
		began := time.Now()
		if err := useOnce(t.Context(), nil); err != nil {
			t.Fatalf("round %d of %d: %v", round+1, rounds, err)
		}
		longest = max(longest, time.Since(began))
	}
	t.Logf("%d rounds, the longest took %v", rounds, longest)
}

func TestManyEnvironmentsRunAtOnceAndShareNothing(t *testing.T) {
	many := 20
	if testing.Short() {
		many = 5
	}
	var running, done sync.WaitGroup
	running.Add(many)
	failures := make([]error, many)
	for i := range many {
		done.Go(func() {
			counted := sync.OnceFunc(running.Done)
			defer counted() // also counts those that did not start
			failures[i] = useOnce(t.Context(), func() { counted(); running.Wait() })
		})
	}
	done.Wait()
	for i, err := range failures {
		if err != nil {
			t.Errorf("environment %d of %d: %v", i+1, many, err)
		}
	}
}

// useOnce starts an environment, creates an object that no other environment may contain, calls
// meanwhile (which may be nil), and stops the environment.
func useOnce(ctx context.Context, meanwhile func()) error {
	env := newEnvironment()
	if _, err := env.Start(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	left := remains(env)
	used := use(ctx, env, meanwhile)
	if err := env.Stop(); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	if used != nil {
		return used
	}
	return left.gone()
}

func use(ctx context.Context, env *envtest.Environment, meanwhile func()) error {
	c, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		return err
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "only"}}
	if _, err := c.CoreV1().ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	if meanwhile != nil {
		meanwhile()
	}
	return reachable(ctx, c)
}

// traces holds the addresses and folders that an environment leaves behind if it is not
// stopped properly.
type traces struct{ addresses, folders []string }

// remains returns the traces that must disappear. Call it before Stop, which makes
// envtest forget its folders.
func remains(env *envtest.Environment) traces {
	etcd, server := env.ControlPlane.Etcd, env.ControlPlane.APIServer
	return traces{
		addresses: []string{etcd.URL.Host, server.HostPort()},
		folders:   []string{etcd.DataDir, server.CertDir},
	}
}

func (l traces) gone() error {
	for _, address := range l.addresses {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return fmt.Errorf("%s still answers", address)
		}
	}
	for _, folder := range l.folders {
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			return fmt.Errorf("%s is still there: %v", folder, err)
		}
	}
	return nil
}

func TestStopSucceedsWhileWatchesAreOpen(t *testing.T) {
	oursOnly(t) // stock keeps watches for a minute, and envtest waits for 20 s
	env := start(t)
	c := clientset(t, env.Config)
	for range 10 {
		w, err := c.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop) // the watches are open until Stop, below, has returned
	}
	left := remains(env)
	if err := env.Stop(); err != nil {
		t.Errorf("Stop with ten open watches: %v", err)
	}
	if err := left.gone(); err != nil {
		t.Error(err)
	}
}
