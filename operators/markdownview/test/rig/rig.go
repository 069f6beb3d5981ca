// Package rig starts everything that sites need: a control plane that runs Pods as processes, and
// the manager, each as a separate program. The package also installs the operator's CRD and
// webhooks. Tests, benchmarks and the command screenshot use this package.
//
// By default, the package uses the programs that "make build" creates in this module and in
// the root of the repository. The variables KOBOSHI, MANAGER and VIEWER name other
// programs.
package rig

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

const (
	// Image is the image of viewers.
	Image = "rig.example/viewer:1"
	// startLimit limits the time that each program takes to start.
	startLimit = 2 * time.Minute
	// look is the interval at which conditions are polled.
	look = 50 * time.Millisecond
)

// Options configure the rig. The zero value starts a plane on which viewers run, and a
// manager.
type Options struct {
	// Programs maps images other than Image to programs.
	Programs map[string]string
	// Simulated makes all Pods simulated, so no site can be reached.
	Simulated bool
	// Nodes is the number of simulated nodes; 0 means one.
	Nodes int
	// ManagerArgs holds further flags of the manager, which override earlier flags.
	ManagerArgs []string
	// Log receives the output of programs that fail to start, and the location of their
	// logs; nil discards both.
	Log io.Writer
}

// Rig holds a running control plane and its manager.
type Rig struct {
	client.WithWatch
	Config     *rest.Config
	Kubeconfig string
	Plane      *Process
	// Manager is the running manager, or the last one.
	Manager *Process
	// Metrics is the URL of the manager's metrics.
	Metrics string

	dir      string
	options  Options
	webhooks *webhooks
	health   string
}

// With starts everything, calls use, and stops all programs. After an error, it keeps the logs
// of the programs.
func With(ctx context.Context, o Options, use func(*Rig) error) (err error) {
	r := &Rig{options: o}
	if r.dir, err = os.MkdirTemp("", "markdownview-rig-"); err != nil {
		return fmt.Errorf("creating a folder: %w", err)
	}
	defer func() {
		if err == nil {
			_ = os.RemoveAll(r.dir) // files that remain are in the temporary folder of the system
		} else if o.Log != nil {
			_, _ = fmt.Fprintln(o.Log, "the logs of the programs are in", r.dir)
		}
	}()
	defer r.stop()
	if err := r.start(ctx); err != nil {
		return err
	}
	return use(r)
}

func (r *Rig) start(ctx context.Context) error {
	if err := r.startPlane(ctx); err != nil {
		return err
	}
	if err := r.install(ctx); err != nil {
		return err
	}
	return r.StartManager(ctx)
}

// stop stops all programs.
func (r *Rig) stop() {
	for _, p := range []*Process{r.Manager, r.Plane} {
		if p != nil {
			p.Stop()
		}
	}
}

// root returns the folder of this module, which must contain the working directory.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "config", "crd", "bases")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the folder of the module: run this program in operators/markdownview or a folder in it")
		}
		dir = filepath.Dir(dir)
	}
}

// FromRoot returns a path in this module.
func FromRoot(path ...string) (string, error) {
	dir, err := root()
	return filepath.Join(append([]string{dir}, path...)...), err
}

// Program returns the path of a built program: the value of the environment variable or, if
// the variable is not set, the joined elements of path. A relative path starts at the
// folder of the module.
func Program(variable string, path ...string) (string, error) {
	name := os.Getenv(variable)
	if name == "" {
		name = filepath.Join(path...)
	}
	if !filepath.IsAbs(name) {
		var err error
		if name, err = FromRoot(name); err != nil {
			return "", err
		}
	}
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("the program %s does not exist: run make build in operators/markdownview and in the root of the repository, or set %s", name, variable)
	}
	return name, nil
}

// Await waits until a condition holds. If the time runs out, the returned error contains the
// last error of the condition.
func Await(ctx context.Context, limit time.Duration, what string, holds func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, look, limit, true, func(ctx context.Context) (bool, error) {
		if err := holds(ctx); err != nil {
			last = err
			return false, nil //nolint:nilerr // it may hold the next time
		}
		return true, nil
	})
	switch {
	case err == nil:
		return nil
	case last == nil:
		return fmt.Errorf("waiting for %s: %w", what, err)
	default:
		return fmt.Errorf("waiting for %s: gave up after %v: %w", what, limit, last)
	}
}

// Namespace creates a namespace.
func (r *Rig) Namespace(ctx context.Context) (string, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "mdv-"}}
	if err := r.Create(ctx, ns); err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	return ns.Name, nil
}

// Save calls change on an object and writes the object, retrying conflicts and short outages of the
// webhooks.
func Save[T client.Object](ctx context.Context, r *Rig, limit time.Duration, object T, change func(T)) error {
	key := client.ObjectKeyFromObject(object)
	return Await(ctx, limit, "the change of "+key.String(), func(ctx context.Context) error {
		if err := r.Get(ctx, key, object); err != nil {
			return err
		}
		change(object)
		return r.Update(ctx, object)
	})
}

// Serving returns an error that explains why a site does not serve its spec; nil if it
// does.
func (r *Rig) Serving(ctx context.Context, view *viewv1.MarkdownView) error {
	if err := r.Get(ctx, client.ObjectKeyFromObject(view), view); err != nil {
		return err
	}
	if view.Status.ObservedGeneration != view.Generation {
		return fmt.Errorf("generation %d is not observed yet; the last observed generation is %d", view.Generation, view.Status.ObservedGeneration)
	}
	for _, c := range view.Status.Conditions {
		if c.Type == viewv1.ConditionReady {
			if c.Status == metav1.ConditionTrue {
				return nil
			}
			return fmt.Errorf("the site is not Ready: %s: %s", c.Reason, c.Message)
		}
	}
	return fmt.Errorf("the site has no condition Ready")
}
