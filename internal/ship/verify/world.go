package verify

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/koboshi-dev/koboshi/internal/check/home"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/order"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
	"github.com/koboshi-dev/koboshi/internal/served"
)

// world holds the servers of the scenario, and the objects that it has applied.
type world struct {
	// servers are outside of the plane. Unlike in koboshi check, there is no proxy in front of them.
	servers *scenario.Servers
	cluster scenario.Cluster
	// objects are those that the scenario has applied, without their content.
	objects []unstructured.Unstructured
}

// startWorld starts the servers of the scenario. The manager gets their addresses from its environment, so
// they must run before it is installed.
func (v *verification) startWorld(ctx context.Context, p *plane) error {
	folder := filepath.Join(p.dir, "home")
	if err := home.Make(folder, nil); err != nil {
		return err
	}
	servers, err := scenario.StartEndpoints(ctx, v.Scenario.Endpoints, folder)
	if err != nil {
		return err
	}
	v.world = world{servers: servers, cluster: scenario.Cluster{
		Client: v.cluster.Dynamic, Mapper: v.cluster.Mapper, Kubeconfig: p.kubeconfig,
		Home: folder, Endpoints: servers.URLs(), Dir: v.Scenario.Dir,
	}}
	for _, e := range v.Scenario.Endpoints {
		if e.Env != "" {
			v.world.cluster.Env = append(v.world.cluster.Env, e.Env+"="+v.world.cluster.Endpoints[e.Name])
		}
	}
	return nil
}

func (v *verification) stopWorld() { _ = v.world.servers.Stop() }

// perform performs the scenario, and waits until the objects that it applies are current.
func (v *verification) perform(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	if err := v.Scenario.Prepare(ctx, v.world.cluster); err != nil {
		return err
	}
	if err := v.remember(v.Scenario.Given); err != nil {
		return err
	}
	for i := range v.Scenario.Steps {
		if err := v.step(ctx, &v.Scenario.Steps[i]); err != nil {
			return err
		}
	}
	return v.current(ctx)
}

// step performs a step, and waits until its conditions hold.
func (v *verification) step(ctx context.Context, s *scenario.Step) error {
	if err := s.Do(ctx, v.world.cluster); err != nil {
		return err
	}
	if err := v.remember(s.Apply); err != nil {
		return err
	}
	if err := s.Await(ctx, v.world.cluster); err != nil {
		return err
	}
	var wrong []string
	err := wait.PollUntilContextCancel(ctx, looks, true, func(ctx context.Context) (bool, error) {
		if now := s.Check(ctx, v.world.cluster); ctx.Err() == nil { // a canceled request shows nothing
			wrong = now
		}
		return len(wrong) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("step %q: %s: %w", s.Name, strings.Join(wrong, "; "), err)
	}
	return nil
}

// looks is the interval at which expectations are checked.
const looks = 250 * time.Millisecond

// remember adds objects to those that the scenario has applied.
func (v *verification) remember(manifests []scenario.Manifest) error {
	for _, m := range manifests {
		applied := unstructured.Unstructured{Object: m.Object}
		var u unstructured.Unstructured
		u.SetGroupVersionKind(applied.GroupVersionKind())
		u.SetName(applied.GetName())
		namespaced, err := v.cluster.Namespaced(u.GroupVersionKind())
		if err != nil {
			return err
		}
		if namespaced {
			u.SetNamespace(cmp.Or(applied.GetNamespace(), metav1.NamespaceDefault))
		}
		known := func(o unstructured.Unstructured) bool { return cluster.IDOf(&o) == cluster.IDOf(&u) }
		if !slices.ContainsFunc(v.world.objects, known) {
			v.world.objects = append(v.world.objects, u)
		}
	}
	return nil
}

// current waits until the objects that the scenario has applied are current.
func (v *verification) current(ctx context.Context) error {
	began := time.Now()
	return ready.Until(ctx, "these objects are not current", v.Observer.Waiting, func(ctx context.Context) (pending []ready.Pending) {
		for i := range v.world.objects {
			u := &v.world.objects[i]
			live, err := v.cluster.Get(ctx, u)
			reason := fmt.Sprint(err)
			switch {
			case err == nil && live == nil:
				reason = "it was deleted"
			case err == nil:
				reason = ready.Reason(live)
			}
			if reason == "" && time.Since(began) < forStatus && v.mayHaveStatus(live) {
				reason = "the controller has written no status"
			}
			if reason != "" {
				pending = append(pending, ready.Pending{ID: cluster.IDOf(u), Reason: reason})
			}
		}
		return pending
	})
}

// forStatus is the time in which a controller writes a status, if it writes one at all. Until then, an object
// looks like one that is current.
const forStatus = 10 * time.Second

// mayHaveStatus reports whether an object of the operator's CRDs has no status although its kind has one.
func (v *verification) mayHaveStatus(live *unstructured.Unstructured) bool {
	if status, _, _ := unstructured.NestedMap(live.Object, "status"); len(status) > 0 {
		return false
	}
	return slices.ContainsFunc(v.Manifest, func(u unstructured.Unstructured) bool {
		if !served.IsCRD(&u) {
			return false
		}
		kind, _ := order.Defined(&u)
		return kind == live.GroupVersionKind().GroupKind()
	})
}
