package scenario

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// health changes the health of Pods on a real plane. It is a part of TestScenariosOnARealPlane.
func health(ctx context.Context, t *testing.T, c Cluster) {
	pods := c.Client.Resource(podResource).Namespace("default")
	running := map[string]any{
		"phase": "Running", "podIP": "10.0.0.1",
		"conditions":        []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "PodScheduled", "status": "True"}},
		"containerStatuses": []any{map[string]any{"name": "main", "image": "a", "imageID": "", "ready": true, "restartCount": int64(0), "state": map[string]any{"running": map[string]any{}}}},
	}
	make := func(name, node, manager string) {
		pod := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"nodeName": node, "containers": []any{map[string]any{"name": "main", "image": "a"}}},
		}}
		created, err := pods.Create(ctx, pod, metav1.CreateOptions{FieldManager: manager})
		if err == nil {
			created.Object["status"] = running
			_, err = pods.UpdateStatus(ctx, created, metav1.UpdateOptions{FieldManager: manager})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	make("simulated", "node-1", "kubelet")
	make("process", localNode, "kubelet")
	make("controller", "node-1", SelfManager)
	statusOf := func(name string) map[string]any {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		status, _, _ := unstructured.NestedMap(pod.Object, "status")
		return status
	}
	before := map[string]map[string]any{"simulated": statusOf("simulated"), "process": statusOf("process"), "controller": statusOf("controller")}
	do := func(value string) {
		if err := (&Step{Name: "pods", PodHealth: value}).Do(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	container := func() map[string]any {
		one, _ := asList(statusOf("simulated")["containerStatuses"])[0].(map[string]any)
		return one
	}

	do(PodsUnready)
	if one := container(); one["ready"] != false || one["restartCount"] != int64(0) {
		t.Errorf("an unready container is %v", one)
	}
	if condition, _ := asList(statusOf("simulated")["conditions"])[0].(map[string]any); condition["status"] != "False" {
		t.Errorf("the condition of an unready Pod is %v", condition)
	}
	do(PodsCrashing)
	state, _ := container()["state"].(map[string]any)
	if waiting, _ := state["waiting"].(map[string]any); waiting["reason"] != "CrashLoopBackOff" {
		t.Errorf("a crashing container is %v", container())
	}
	for _, name := range []string{"process", "controller"} {
		if diff := cmp.Diff(before[name], statusOf(name)); diff != "" {
			t.Errorf("the Pod %s has changed: %s", name, diff)
		}
	}
	do(PodsReady)
	do(PodsReady) // there is nothing left to restore
	after := statusOf("simulated")
	if condition, _ := asList(after["conditions"])[0].(map[string]any); condition["lastTransitionTime"] == nil {
		t.Error("the Pod has been ready all the time")
	} else {
		condition["lastTransitionTime"] = nil
	}
	if diff := cmp.Diff(before["simulated"], after); diff != "" {
		t.Errorf("the Pod is not as before, -want +got:\n%s", diff)
	}
	closed := func() (names []string) {
		all, err := c.Client.Resource(nodeResource).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range all.Items {
			if unschedulable, _, _ := unstructured.NestedBool(node.Object, "spec", "unschedulable"); unschedulable {
				names = append(names, node.GetName())
			}
		}
		return names
	}
	for name, unschedulable := range map[string]bool{"node-1": false, "drained": true, localNode: false} {
		node := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name}, "spec": map[string]any{"unschedulable": unschedulable},
		}}
		if _, err := c.Client.Resource(nodeResource).Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	after = statusOf("simulated")
	do(PodsPending)
	do(PodsPending)
	if got := closed(); !slices.Contains(got, "node-1") || slices.Contains(got, localNode) {
		t.Errorf("while Pods are to stay pending, the nodes %q accept none", got)
	}
	do(PodsReady)
	if got := closed(); !slices.Equal(got, []string{"drained"}) {
		t.Errorf("when Pods are to be ready, the nodes %q accept none, but only one was closed before", got)
	}
	if diff := cmp.Diff(after, statusOf("simulated")); diff != "" {
		t.Errorf("a Pod that ran has changed: %s", diff)
	}
	pod, err := pods.Get(ctx, "simulated", metav1.GetOptions{})
	if err != nil || pod.GetAnnotations()[wasHealthy] != "" {
		t.Errorf("the annotations are %v, %v", pod.GetAnnotations(), err)
	}
}
