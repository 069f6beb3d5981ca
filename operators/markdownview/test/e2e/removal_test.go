package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/readers"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/rig"
)

// children returns the kinds and names of all objects of a site.
func children(ctx context.Context, view *viewv1.MarkdownView) ([]string, error) {
	var names []string
	for _, list := range []client.ObjectList{
		&corev1.ConfigMapList{}, &corev1.ServiceList{}, &corev1.PodList{}, &appsv1.DeploymentList{},
		&appsv1.ReplicaSetList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{},
		&networkingv1.IngressList{},
	} {
		err := world.List(ctx, list, client.InNamespace(view.Namespace),
			client.MatchingLabels{"app.kubernetes.io/instance": view.Name})
		if err != nil {
			return nil, err
		}
		err = meta.EachListItem(list, func(o runtime.Object) error {
			child, err := meta.Accessor(o)
			if err == nil {
				names = append(names, fmt.Sprintf("%T %s", o, child.GetName()))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// remove deletes a site and waits until none of its objects are left.
func remove(ctx context.Context, view *viewv1.MarkdownView) error {
	if err := world.Delete(ctx, view); client.IgnoreNotFound(err) != nil {
		return err
	}
	return rig.Await(ctx, patience, "all children of "+view.Name+" to be deleted", func(ctx context.Context) error {
		left, err := children(ctx, view)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("there are still %s", strings.Join(left, ", "))
		}
		return err
	})
}

func TestDeletionRemovesEveryChildAndEveryProcess(t *testing.T) {
	const title = "A site that goes"
	view := newView(t, viewv1.MarkdownViewSpec{
		Title: title, Replicas: new(int32(2)), Markdowns: readers.Book(1, 3),
		Ingress: &viewv1.IngressSettings{Host: "site.example"},
	})
	publish(t, view)
	if running := viewersOf(t, title); len(running) != 2 {
		t.Fatalf("%d processes, want 2: %q", len(running), running)
	}
	kinds := strings.Join(must[[]string](t)(children(t.Context(), view)), " ")
	for _, kind := range []string{"ConfigMap", "Service", "Pod", "Deployment", "ReplicaSet", "PodDisruptionBudget", "NetworkPolicy", "Ingress"} {
		if !strings.Contains(kinds, "."+kind+" ") {
			t.Errorf("there is no %s among %s", kind, kinds)
		}
	}
	if err := remove(t.Context(), view); err != nil {
		t.Fatal(err)
	}
	await(t, "the processes to end", func(context.Context) error { return countViewers(title, 0) })
}

// viewersOf returns the viewer processes of the site with this title.
func viewersOf(t *testing.T, title string) []string {
	t.Helper()
	return must[[]string](t)(world.Plane.Descendants("--title=" + title))
}

func countViewers(title string, want int) error {
	running, err := world.Plane.Descendants("--title=" + title)
	if err == nil && len(running) != want {
		err = fmt.Errorf("%d processes, want %d: %q", len(running), want, running)
	}
	return err
}
