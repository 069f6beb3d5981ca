// Package verify installs what koboshi ship has made in a control plane, and uninstalls it again.
//
//	plane ─▶ snapshot ─┬─▶ install ─▶ samples ───────────────────────────┬─▶ uninstall ─▶ snapshot, which
//	                   └─▶ old version ─▶ samples ─▶ upgrade ─▶ compare ─┘                must be the same
//
// Pods run the programs of the image, with no file from this machine. What works here works in a cluster,
// except for what a plane does not have; see docs/guide/reference/limits.md.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/deploy"
	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/ship/install"
)

// Version is one version of the operator.
type Version struct {
	// Image is the image as the manifest names it, and Layout the folder that has it in the OCI layout.
	Image, Layout string
	// Program is the first word of the manager's command in the manifest; empty if there is no command.
	Program string
	// Manifest installs the operator. Its objects without a namespace belong to Namespace; empty means
	// default.
	Manifest  []unstructured.Unstructured
	Namespace string
}

// Options says what is verified.
type Options struct {
	// Koboshi is the koboshi program, which runs the plane.
	Koboshi string
	Version
	// Old is installed first, and then upgraded; nil means that there is no older version.
	Old *Version
	// Args are added to the arguments of the manager.
	Args []string
	// Scenario is performed once the operator works, and deletes nothing; nil means that nothing is applied.
	Scenario *scenario.Scenario
	// Timeout limits each step.
	Timeout  time.Duration
	Observer Observer
}

// Observer is told about progress, from one goroutine.
type Observer interface {
	// Step is called when a step has succeeded.
	Step(name string, took time.Duration)
	// Waiting is called when the list of objects that are waited for has changed.
	Waiting([]ready.Pending)
	Note(text string)
}

// Run verifies. Its error says what does not work, and ends with what the Pods of the operator printed.
func Run(ctx context.Context, o Options) error {
	began := time.Now()
	if o.Scenario == nil {
		o.Scenario = &scenario.Scenario{}
	}
	p, err := startPlane(ctx, o)
	if err != nil {
		return fmt.Errorf("starting a control plane: %w", err)
	}
	defer p.stop()
	v, err := connect(o, p.kubeconfig)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := v.prepare(ctx); err != nil {
		return fmt.Errorf("preparing the control plane: %w", err)
	}
	o.Observer.Step("plane", time.Since(began))
	if err := v.startWorld(ctx, p); err != nil {
		return err
	}
	defer v.stopWorld()
	return v.explained(v.steps(ctx))
}

// verification is one call of Run.
type verification struct {
	Options
	config    *rest.Config
	cluster   *cluster.Cluster
	before    snapshot
	world     world
	upgrading upgrading
	namespace string // of the operator
}

func connect(o Options, kubeconfig string) (*verification, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	c, err := cluster.Connect(config, "")
	return &verification{Options: o, config: config, cluster: c}, err
}

// prepare begins to issue certificates, until ctx ends, and lists what the plane has once its controllers have
// created their own objects.
func (v *verification) prepare(ctx context.Context) (err error) {
	if err := v.issueCertificates(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, toStart)
	defer cancel()
	v.before, err = v.settled(ctx, settles)
	return err
}

// settled returns the objects of the plane once none was created or deleted for a time.
func (v *verification) settled(ctx context.Context, quiet time.Duration) (now snapshot, err error) {
	err = wait.PollUntilContextCancel(ctx, quiet, true, func(ctx context.Context) (bool, error) {
		before := now
		now, err = takeSnapshot(ctx, v.cluster)
		return before != nil && len(now.changed(before)) == 0, err
	})
	return now, err
}

// settles is the time in which a plane whose controllers have nothing to do creates and deletes no object.
const settles = time.Second

// steps does everything in a plane that runs.
func (v *verification) steps(ctx context.Context) error {
	type step struct {
		name string
		do   func(context.Context) error
	}
	steps := []step{{"install", v.install}, {"samples", v.perform}}
	if v.Old != nil {
		steps = []step{{"old version", v.installOld}, {"samples", v.perform}, {"upgrade", v.upgrade}, {"nothing is lost", v.nothingLost}}
	}
	for _, step := range append(steps, step{"uninstall", v.uninstall}, step{"nothing is left", v.nothingLeft}) {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		v.Observer.Step(step.name, time.Since(began))
	}
	return nil
}

// options returns how a version is deployed.
func (v *verification) options(version Version) (deploy.Options, error) {
	objects := copies(version.Manifest)
	n := install.Extend(objects, version.Image, version.Program, v.Args, v.world.cluster.Env)
	if n == 0 && len(v.Args)+len(v.world.cluster.Env) > 0 {
		return deploy.Options{}, fmt.Errorf("no container starts the manager from the image %s, so it cannot get further arguments and variables", version.Image)
	}
	into := *v.cluster
	into.Namespace = cmp.Or(version.Namespace, into.Namespace)
	return deploy.Options{Cluster: &into, Objects: objects, Timeout: v.Timeout, Observer: deployObserver{v.Observer}}, nil
}

// copies returns copies of objects, because a deployment labels its objects.
func copies(objects []unstructured.Unstructured) (all []unstructured.Unstructured) {
	for i := range objects {
		all = append(all, *objects[i].DeepCopy())
	}
	return all
}

func (v *verification) install(ctx context.Context) error { return v.deploy(ctx, v.Version) }

func (v *verification) deploy(ctx context.Context, version Version) error {
	options, err := v.options(version)
	if err != nil {
		return err
	}
	result, err := deploy.Run(ctx, options)
	if result != nil {
		v.namespace = result.Namespace
	}
	return err
}

// uninstall deletes the operator, and then those objects of the scenario that are not objects of its CRDs.
func (v *verification) uninstall(ctx context.Context) error {
	options, err := v.options(v.Version)
	if err != nil {
		return err
	}
	if _, err := deploy.Delete(ctx, options, func([]string) error { return nil }); err != nil {
		return err
	}
	for i := range v.world.objects {
		if err := v.cluster.Delete(ctx, &v.world.objects[i], metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return nil
}

// nothingLeft compares the plane with what it was before the installation. Objects that others delete, such as
// the garbage collector, may take a moment.
func (v *verification) nothingLeft(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	err := ready.Until(ctx, "these objects differ from those before the installation", v.Observer.Waiting, func(ctx context.Context) []ready.Pending {
		after, err := takeSnapshot(ctx, v.cluster)
		if err != nil {
			return []ready.Pending{{Reason: err.Error()}}
		}
		return after.changed(v.before)
	})
	if err == nil {
		v.Observer.Note("compared " + noun.Count(len(v.before), "object") + " with those before the installation")
	}
	return err
}

// explained adds what the Pods of the operator printed last.
func (v *verification) explained(err error) error {
	if err == nil || v.namespace == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = errors.Join(err, v.world.servers.Failed())
	lines := lastLines(ctx, v.config, v.namespace)
	if len(lines) == 0 {
		return err
	}
	return fmt.Errorf("%w\nthe last %s of the Pods in namespace %s:\n  %s", err, noun.Count(len(lines), "line"), v.namespace, strings.Join(lines, "\n  "))
}

// deployObserver passes on the progress of a deployment.
type deployObserver struct{ Observer }

func (deployObserver) Done(deploy.Change) {}
