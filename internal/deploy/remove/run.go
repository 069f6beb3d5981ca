package remove

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/order"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
	"github.com/koboshi-dev/koboshi/internal/served"
)

// Run deletes everything, and returns when it is gone.
func (p *Plan) Run(ctx context.Context, o Observer) error {
	r := &removal{Plan: p, observer: o, owners: map[types.UID]cluster.ID{}}
	if err := r.custom(ctx); err != nil {
		return err
	}
	if err := r.dependents(ctx); err != nil {
		return err
	}
	for _, s := range r.stages() {
		if err := r.delete(ctx, s); err != nil {
			return err
		}
	}
	return p.inventory.Delete(ctx)
}

// removal is one call of Run.
type removal struct {
	*Plan
	observer Observer
	owners   map[types.UID]cluster.ID // the custom objects that are deleted
}

// stage is a number of objects that are deleted together.
type stage struct {
	objects []*unstructured.Unstructured
	how     metav1.DeletionPropagation
}

// stages returns the objects in the order in which they are deleted. The namespace of the inventory
// comes last, because the inventory goes with it.
func (r *removal) stages() []stage {
	var webhooks, workloads, rest, crds, namespaces, home []*unstructured.Unstructured
	for _, u := range slices.Backward(r.objects) {
		into := &rest
		switch {
		case order.IsWebhook(u):
			into = &webhooks
		case order.IsWorkload(u):
			into = &workloads
		case served.IsCRD(u):
			into = &crds
		case order.IsNamespace(u) && u.GetName() == r.inventory.Parent().Namespace:
			into = &home
		case order.IsNamespace(u):
			into = &namespaces
		}
		*into = append(*into, u)
	}
	const background = metav1.DeletePropagationBackground
	return []stage{
		{webhooks, background},
		// The Pods must be gone before the rest, because what they need is deleted with it.
		{workloads, metav1.DeletePropagationForeground},
		{rest, background}, {crds, background}, {namespaces, background}, {home, background},
	}
}

// custom deletes the custom objects, also those that are created meanwhile, and waits until the
// controller has removed their finalizers.
func (r *removal) custom(ctx context.Context) error {
	seen := map[cluster.ID]bool{}
	return ready.Until(ctx, "these objects still exist", r.observer.Waiting, func(ctx context.Context) []ready.Pending {
		now := map[cluster.ID]bool{}
		var pending []ready.Pending
		for _, k := range r.Plan.custom {
			left, err := instances(ctx, r.cluster, k.crd)
			if err != nil {
				pending = append(pending, ready.Pending{ID: cluster.IDOf(k.crd), Reason: err.Error()})
			}
			for i := range left {
				id := cluster.IDOf(&left[i])
				now[id], r.owners[left[i].GetUID()] = true, id
				pending = append(pending, ready.Pending{ID: id, Reason: r.begin(ctx, &left[i], metav1.DeletePropagationBackground)})
			}
		}
		if ctx.Err() == nil {
			r.gone(seen, now)
		}
		return pending
	})
}

// dependents waits until the garbage collector has deleted what the custom objects own. Once the CRDs are gone,
// it can no longer find out that an owner does not exist, and would keep these objects forever.
func (r *removal) dependents(ctx context.Context) error {
	for len(r.owners) > 0 {
		all, err := r.cluster.All(ctx)
		if err != nil {
			return err
		}
		var left []*unstructured.Unstructured
		for _, o := range all {
			if r.isOwned(o) {
				left = append(left, o.Reference())
			}
		}
		if len(left) == 0 {
			return nil
		}
		err = ready.Until(ctx, "these objects still exist", r.observer.Waiting, func(ctx context.Context) (pending []ready.Pending) {
			left, pending = r.still(ctx, left, "the garbage collector deletes it, because its owner is gone")
			return pending
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isOwned reports whether only custom objects that are gone own an object.
func (r *removal) isOwned(o cluster.Listed) bool {
	return len(o.Owners) > 0 && !slices.ContainsFunc(o.Owners, func(owner metav1.OwnerReference) bool {
		_, gone := r.owners[owner.UID]
		return !gone
	})
}

// still returns those objects that still exist, each with the reason.
func (r *removal) still(ctx context.Context, objects []*unstructured.Unstructured, reason string) (left []*unstructured.Unstructured, pending []ready.Pending) {
	for _, u := range objects {
		live, err := r.cluster.Get(ctx, u)
		if err == nil && (live == nil || live.GetUID() != u.GetUID()) {
			continue
		}
		because := reason
		if err != nil {
			because = err.Error()
		}
		left, pending = append(left, u), append(pending, ready.Pending{ID: cluster.IDOf(u), Reason: because})
	}
	return left, pending
}

// gone reports the objects that were seen before and do not exist now.
func (r *removal) gone(seen, now map[cluster.ID]bool) {
	for id := range seen {
		if !now[id] {
			r.observer.Gone(id)
			delete(seen, id)
		}
	}
	for id := range now {
		seen[id] = true
	}
}

// begin deletes an object unless this has happened before, and returns what is waited for.
func (r *removal) begin(ctx context.Context, live *unstructured.Unstructured, how metav1.DeletionPropagation) string {
	if live.GetDeletionTimestamp() == nil {
		if err := r.cluster.Delete(ctx, live, how); err != nil {
			return err.Error()
		}
		return "it is being deleted"
	}
	if names := live.GetFinalizers(); len(names) > 0 {
		return "it has finalizers: " + strings.Join(names, ", ")
	}
	if order.IsNamespace(live) {
		return "its content is being deleted"
	}
	return "it is being deleted"
}

// delete deletes the objects of a stage, and waits until they are gone.
func (r *removal) delete(ctx context.Context, s stage) error {
	left := s.objects
	return ready.Until(ctx, "these objects still exist", r.observer.Waiting, func(ctx context.Context) []ready.Pending {
		var pending []ready.Pending
		var again []*unstructured.Unstructured
		for _, u := range left {
			live, err := r.cluster.Get(ctx, u)
			if err == nil && (live == nil || live.GetUID() != u.GetUID()) {
				r.observer.Gone(cluster.IDOf(u))
				continue
			}
			reason := fmt.Sprint(err)
			if err == nil {
				reason = r.begin(ctx, live, s.how)
			}
			again = append(again, u)
			pending = append(pending, ready.Pending{ID: cluster.IDOf(u), Reason: reason})
		}
		left = again
		return pending
	})
}

// resourceOf returns the resource of a CRD in a version that is served.
func resourceOf(crd *unstructured.Unstructured) (schema.GroupVersionResource, bool) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["served"] == true {
			name, _ := version["name"].(string)
			return schema.GroupVersionResource{Group: group, Version: name, Resource: plural}, true
		}
	}
	return schema.GroupVersionResource{}, false
}
