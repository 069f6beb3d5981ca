package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// These are the values of Step.PodHealth. A kubelet reports the first two, and the scheduler the third.
const (
	PodsUnready  = "unready"  // the containers run, but are not ready
	PodsCrashing = "crashing" // the containers end again and again, and wait for their next start
	PodsPending  = "pending"  // no node accepts the Pods that are created from now on
	PodsReady    = "ready"    // as before
)

// healths lists the values of Step.PodHealth.
var healths = []string{PodsUnready, PodsCrashing, PodsPending, PodsReady}

// wasHealthy is the annotation of a Pod that keeps its status until it is ready again. The checker never
// compares annotations with this prefix; see state.Mark.
const wasHealthy = "check.koboshi.dev/healthy"

// wasOpen is the annotation of a node that accepts no Pods until they are to be ready again.
const wasOpen = "check.koboshi.dev/open"

var (
	podResource  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodeResource = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// setHealth changes the health of simulated Pods, or restores it.
func (c Cluster) setHealth(ctx context.Context, health string) error {
	switch health {
	case PodsPending:
		return c.closeNodes(ctx)
	case PodsReady:
		if err := c.openNodes(ctx); err != nil {
			return err
		}
	}
	return c.setRunning(ctx, health)
}

// closeNodes makes all simulated nodes unschedulable, as kubectl cordon does.
func (c Cluster) closeNodes(ctx context.Context) error {
	return c.eachNode(ctx, func(node *unstructured.Unstructured) map[string]any {
		if closed, _, _ := unstructured.NestedBool(node.Object, "spec", "unschedulable"); closed {
			return nil
		}
		return marked(true, "true")
	})
}

// openNodes reverses closeNodes.
func (c Cluster) openNodes(ctx context.Context) error {
	return c.eachNode(ctx, func(node *unstructured.Unstructured) map[string]any {
		if node.GetAnnotations()[wasOpen] == "" {
			return nil
		}
		return marked(nil, nil)
	})
}

func marked(unschedulable, mark any) map[string]any {
	return map[string]any{
		"spec":     map[string]any{"unschedulable": unschedulable},
		"metadata": map[string]any{"annotations": map[string]any{wasOpen: mark}},
	}
}

// eachNode patches each simulated node with the change, unless it is nil.
func (c Cluster) eachNode(ctx context.Context, change func(*unstructured.Unstructured) map[string]any) error {
	nodes := c.Client.Resource(nodeResource)
	return persist(ctx, "patch the nodes", func() error {
		all, err := nodes.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range all.Items {
			node := &all.Items[i]
			patch := change(node)
			if patch == nil || node.GetName() == localNode {
				continue
			}
			_, err := nodes.Patch(ctx, node.GetName(), types.MergePatchType, mustJSON(patch), metav1.PatchOptions{FieldManager: fieldManager})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// setRunning changes the status of all simulated Pods that run, or restores it. Pods that are created later
// are healthy.
func (c Cluster) setRunning(ctx context.Context, health string) error {
	var pods *unstructured.UnstructuredList
	err := persist(ctx, "list Pods", func() (err error) {
		pods, err = c.Client.Resource(podResource).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; isSimulated(pod) {
			if err := c.setPodHealth(ctx, pod, health); err != nil {
				return err
			}
		}
	}
	return nil
}

// isSimulated reports whether a Pod has a status of which only the simulation of its node knows. The
// controller's own Pod has one of the checker.
func isSimulated(pod *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	own := slices.ContainsFunc(pod.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == SelfManager })
	return phase == "Running" && node != "" && node != localNode && !own && pod.GetDeletionTimestamp() == nil
}

const (
	// SelfManager is the field manager of the objects with which a controller can look up itself.
	SelfManager = "koboshi-check-self"
	// localNode is the node of Pods that are processes of this machine; see nodes.Local.
	localNode = "local"
)

func (c Cluster) setPodHealth(ctx context.Context, pod *unstructured.Unstructured, health string) error {
	status, _, _ := unstructured.NestedMap(pod.Object, "status")
	kept, wasChanged := pod.GetAnnotations()[wasHealthy]
	annotation := any(nil)
	switch {
	case health == PodsReady && !wasChanged:
		return nil
	case health == PodsReady:
		status = map[string]any{}
		if err := json.Unmarshal([]byte(kept), &status); err != nil {
			return fmt.Errorf("reading the annotation %s of Pod %s/%s: %w", wasHealthy, pod.GetNamespace(), pod.GetName(), err)
		}
		for _, c := range asList(status["conditions"]) {
			if condition, _ := c.(map[string]any); ofReadiness(condition) {
				condition["lastTransitionTime"] = now()
			}
		}
	default:
		if !wasChanged {
			kept = string(mustJSON(status))
		}
		annotation, status = kept, ill(status, health == PodsCrashing)
	}
	mark := map[string]any{"metadata": map[string]any{"annotations": map[string]any{wasHealthy: annotation}}}
	if err := c.patchPod(ctx, pod, mark); err != nil {
		return err
	}
	return c.patchPod(ctx, pod, map[string]any{"status": status}, "status")
}

// patchPod patches a Pod, unless the controller has deleted it.
func (c Cluster) patchPod(ctx context.Context, pod *unstructured.Unstructured, change map[string]any, subresources ...string) error {
	err := persist(ctx, "patch Pod "+pod.GetNamespace()+"/"+pod.GetName(), func() error {
		_, err := c.Client.Resource(podResource).Namespace(pod.GetNamespace()).Patch(ctx, pod.GetName(), types.MergePatchType, mustJSON(change), metav1.PatchOptions{FieldManager: fieldManager}, subresources...)
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ill returns a copy of the status of a Pod whose containers are not ready.
func ill(status map[string]any, crashing bool) map[string]any {
	out := (&unstructured.Unstructured{Object: status}).DeepCopy().Object
	for _, c := range asList(out["conditions"]) {
		if condition, _ := c.(map[string]any); ofReadiness(condition) {
			condition["status"], condition["reason"], condition["lastTransitionTime"] = "False", "ContainersNotReady", now()
		}
	}
	for _, c := range asList(out["containerStatuses"]) {
		container, isContainer := c.(map[string]any)
		if !isContainer {
			continue
		}
		container["ready"] = false
		if crashing { // the number of restarts stays, because it could not go back
			container["started"] = false
			container["state"] = map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
		}
	}
	return out
}

// ofReadiness reports whether a condition of a Pod depends on the readiness of its containers.
func ofReadiness(condition map[string]any) bool {
	return condition["type"] == "Ready" || condition["type"] == "ContainersReady"
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}
