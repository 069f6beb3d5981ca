package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// startTimeout limits each start and each stop of one process. With envtest's default
	// of 20 s, a slow machine would yield failures instead of figures.
	startTimeout = time.Minute
	// restTimeout limits the duration of each step of the scenario.
	restTimeout = 30 * time.Second
	// window is the time without a write after which the cluster is considered idle. It is
	// the shortest window that koboshi check uses.
	window = 100 * time.Millisecond
)

var (
	databases = schema.GroupVersionResource{Group: "bugs.koboshi.dev", Version: "v1", Resource: "databases"}
	secrets   = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// obvious makes o.sample runs, at most atOnce of them in parallel. Each run is as short as
// a run with a fault can be: it performs only the first step of the scenario, and kills the
// controller when the first Secret appears. A test without a proxy can inject no other
// fault.
func (o *options) obvious(ctx context.Context, work string, atOnce int) (s series, err error) {
	var (
		all  sync.WaitGroup
		next atomic.Int64
		errs = make([]error, atOnce)
	)
	began := time.Now()
	for i := range atOnce {
		all.Go(func() {
			for int(next.Add(1)) <= o.sample && errs[i] == nil && ctx.Err() == nil {
				_, errs[i] = o.fresh(ctx, work, true)
			}
		})
	}
	all.Wait()
	s = series{Runs: o.sample, Seconds: time.Since(began).Seconds()}
	return s, errors.Join(append(errs, ctx.Err())...)
}

// fresh starts an environment and a controller, and waits until they are idle. If knock is
// true, fresh injects the fault. If knock is false, it also performs the second step, and
// returns the time from the start of that step to the last write.
func (o *options) fresh(ctx context.Context, work string, knock bool) (converged time.Duration, err error) {
	dir, err := os.MkdirTemp(work, "stock-")
	if err != nil {
		return 0, err
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory:    o.stock,
		CRDDirectoryPaths:        []string{filepath.Join(o.bug, "crd.yaml")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
	}
	config, err := env.Start()
	if err != nil {
		return 0, errors.Join(fmt.Errorf("starting stock envtest: %w", err), env.Stop())
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, env.KubeConfig, 0o600); err != nil {
		return 0, err
	}
	c := &controller{program: o.bugs, kubeconfig: kubeconfig, stands: !knock}
	defer c.kill()
	ctx, cancel := context.WithTimeout(ctx, restTimeout)
	defer cancel()
	return o.live(ctx, config, c, knock)
}

// live performs the first step of the scenario. If knock is false, it also performs the
// second step and returns its duration.
func (o *options) live(ctx context.Context, config *rest.Config, c *controller, knock bool) (time.Duration, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	events := make(chan watch.Event)
	for _, resource := range []schema.GroupVersionResource{databases, secrets} {
		w, err := client.Resource(resource).Namespace("default").Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, fmt.Errorf("watching %s: %w", resource.Resource, err)
		}
		defer w.Stop()
		go pass(ctx, w.ResultChan(), events)
	}
	if err := c.start(); err != nil {
		return 0, err
	}
	if err := o.step(ctx, client, c, events, 0); err != nil || knock {
		return 0, err
	}
	began := time.Now()
	err = o.step(ctx, client, c, events, 1)
	return c.wrote.Sub(began), err
}

// step performs one step and waits until all expected objects exist and the cluster is
// idle.
func (o *options) step(ctx context.Context, client dynamic.Interface, c *controller, events <-chan watch.Event, n int) error {
	object, err := o.object(n)
	if err != nil {
		return err
	}
	_, err = client.Resource(databases).Namespace("default").Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "bench", Force: true})
	if err != nil {
		return fmt.Errorf("performing step %d of the scenario: %w", n+1, err)
	}
	return c.follow(ctx, events)
}

func pass(ctx context.Context, from <-chan watch.Event, to chan<- watch.Event) {
	for event := range from {
		select {
		case to <- event:
		case <-ctx.Done():
			return
		}
	}
}

// follow watches the writes, injects the fault, and returns as soon as the cluster is
// idle.
func (c *controller) follow(ctx context.Context, events <-chan watch.Event) error {
	seen, ready := map[string]bool{}, false
	still := time.NewTimer(window)
	defer still.Stop()
	for {
		select {
		case event := <-events:
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				return fmt.Errorf("a watch ended: %v", event.Object)
			}
			c.wrote = time.Now()
			if object.GetKind() == "Secret" {
				seen[object.GetName()] = true
			} else {
				_, ready, _ = unstructured.NestedFieldNoCopy(object.Object, "status", "generation")
			}
			if len(seen) > 0 && !c.stands {
				c.stands = true // no more faults
				c.kill()
				if err := c.start(); err != nil {
					return err
				}
			}
			still.Reset(window)
		case <-still.C:
			if c.stands && len(seen) == 2 && ready {
				return nil
			}
			still.Reset(window)
		case <-ctx.Done():
			c.kill() // which also completes its output
			return fmt.Errorf("the controller did not recover within %s; its output:\n%s", restTimeout, c.said.String())
		}
	}
}

// object returns the object that a step of the scenario applies.
func (o *options) object(n int) (*unstructured.Unstructured, error) {
	path := filepath.Join(o.bug, "scenario.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var scenario struct {
		Steps []struct {
			Apply []unstructured.Unstructured `json:"apply"`
		} `json:"steps"`
	}
	if err := yaml.Unmarshal(data, &scenario); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(scenario.Steps) <= n || len(scenario.Steps[n].Apply) == 0 {
		return nil, fmt.Errorf("%s: step %d does not exist or applies no object", path, n+1)
	}
	return &scenario.Steps[n].Apply[0], nil
}

// controller is the process that the fault kills.
type controller struct {
	program, kubeconfig string
	cmd                 *exec.Cmd
	said                strings.Builder
	stands              bool      // it was already killed, or must not be killed
	wrote               time.Time // time at which the last write was observed
}

func (c *controller) start() error {
	c.said.Reset()
	c.cmd = exec.Command(c.program, "b1", "--repaired")
	c.cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	c.cmd.Stdout, c.cmd.Stderr = &c.said, &c.said
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("starting the controller: %w", err)
	}
	return nil
}

func (c *controller) kill() {
	if c.cmd != nil && c.cmd.Process != nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		c.cmd = nil
	}
}
