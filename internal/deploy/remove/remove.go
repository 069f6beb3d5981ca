// Package remove deletes a deployment, so that the cluster is as it was before.
//
//	custom objects, while the controller still works ──▶ webhooks ──▶ workloads ──▶ the rest
//	                                                                                   │
//	                                         the inventory ◀── namespaces ◀── CRDs ◀───┘
//
// Each step waits until its objects are gone. The inventory is deleted last, so that a call that was
// interrupted is completed by the next one.
package remove

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/inventory"
	"github.com/koboshi-dev/koboshi/internal/deploy/order"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/served"
)

// protected are namespaces that every cluster has.
var protected = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"}

// Plan is what belongs to a deployment.
type Plan struct {
	cluster   *cluster.Cluster
	inventory *inventory.Inventory
	// objects are in the order in which they were applied. They do not include custom objects.
	objects []*unstructured.Unstructured
	custom  []customKind
}

// customKind is the kind of a CRD of the deployment, and its objects.
type customKind struct {
	crd     *unstructured.Unstructured
	objects []unstructured.Unstructured
}

// Observer is told about progress, from one goroutine.
type Observer interface {
	// Gone is called when an object no longer exists.
	Gone(cluster.ID)
	Waiting([]ready.Pending)
}

// Find lists what belongs to a deployment. It changes nothing.
func Find(ctx context.Context, c *cluster.Cluster, i *inventory.Inventory) (*Plan, error) {
	members, err := i.Members(ctx)
	if err != nil {
		return nil, err
	}
	p, defined := &Plan{cluster: c, inventory: i}, map[schema.GroupKind]bool{}
	for n := range members {
		u := &members[n]
		if order.IsNamespace(u) && slices.Contains(protected, u.GetName()) {
			continue
		}
		if kind := u.GroupVersionKind().GroupKind(); defined[kind] {
			continue
		}
		p.objects = append(p.objects, u)
		if !served.IsCRD(u) {
			continue
		}
		kind, _ := order.Defined(u)
		defined[kind] = true // CRDs come before their objects
		objects, err := instances(ctx, c, u)
		if err != nil {
			return nil, err
		}
		p.custom = append(p.custom, customKind{u, objects})
	}
	return p, nil
}

// Empty reports whether there is nothing to delete.
func (p *Plan) Empty() bool { return len(p.objects) == 0 && !p.inventory.Exists() }

// Lines describes what will be deleted, for a question.
func (p *Plan) Lines() []string {
	count := map[string]int{}
	var lines, kinds []string
	for _, k := range p.custom {
		if len(k.objects) > 0 {
			lines = append(lines, noun.Count(len(k.objects), k.crd.GetName()+" object"))
		}
	}
	for _, u := range p.objects {
		if order.IsNamespace(u) {
			lines = append(lines, fmt.Sprintf("namespace %s, with everything in it", u.GetName()))
			continue
		}
		if count[u.GetKind()]++; count[u.GetKind()] == 1 {
			kinds = append(kinds, u.GetKind())
		}
	}
	for _, kind := range kinds {
		lines = append(lines, noun.Count(count[kind], kind))
	}
	return lines
}

// Check refuses a deletion that cannot end well: custom objects have finalizers, and no controller
// works that could remove them.
func (p *Plan) Check() error {
	var waiting []string
	for _, k := range p.custom {
		for i := range k.objects {
			if u := &k.objects[i]; len(finalizers(u)) > 0 {
				waiting = append(waiting, fmt.Sprintf("%s (%s)", cluster.IDOf(u), strings.Join(finalizers(u), ", ")))
			}
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	reason := "the deployment has no workload that could remove the finalizers"
	for _, u := range p.objects {
		if !order.IsWorkload(u) {
			continue
		}
		if reason = unavailable(u); reason != "" {
			break
		}
	}
	if reason == "" {
		return nil
	}
	return fmt.Errorf("nothing was deleted now, because these objects have finalizers, and %s:\n  %s\nrepair the controller with koboshi deploy, or remove the finalizers by hand and clean up what they protect",
		reason, strings.Join(waiting, "\n  "))
}

// unavailable returns why a workload does not work, or an empty text. A workload with no replicas is
// current, but does not work.
func unavailable(u *unstructured.Unstructured) string {
	for _, field := range []string{"availableReplicas", "numberAvailable"} {
		if n, _, _ := unstructured.NestedInt64(u.Object, "status", field); n > 0 {
			return ""
		}
	}
	return fmt.Sprintf("%s is not available", cluster.IDOf(u))
}

// finalizers returns the finalizers of an object that a controller of the deployment may have to
// remove. The others are those of the garbage collector.
func finalizers(u *unstructured.Unstructured) []string {
	return slices.DeleteFunc(slices.Clone(u.GetFinalizers()), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
}

// instances lists the objects of a CRD.
func instances(ctx context.Context, c *cluster.Cluster, crd *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	resource, ok := resourceOf(crd)
	if !ok {
		return nil, nil
	}
	list, err := c.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the objects of %s: %w", cluster.IDOf(crd), err)
	}
	return list.Items, nil
}
