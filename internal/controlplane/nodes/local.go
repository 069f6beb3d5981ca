package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// Local is the name of the node that stands for this machine.
	Local = "local"
	// These are the values of OwnedLabel for simulated nodes and for the node
	// Local.
	simulatedNode, localNode = "simulated", "local"
)

// EnsureLocal creates the node Local, which is not Ready until its kubelet
// reports otherwise. If the node exists from an earlier start, it keeps its
// Pods.
func EnsureLocal(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().Nodes().Create(ctx, newLocal(), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return takeOverLocal(ctx, client)
	}
	if err != nil {
		return fmt.Errorf("creating node %s: %w", Local, err)
	}
	return nil
}

// takeOverLocal marks the node of an earlier start as not Ready.
func takeOverLocal(ctx context.Context, client kubernetes.Interface) error {
	node, err := client.CoreV1().Nodes().Get(ctx, Local, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading node %s: %w", Local, err)
	}
	if node.Labels[OwnedLabel] != localNode {
		return fmt.Errorf("node %s already exists, but koboshi did not create it; delete the node, or omit --run and --config", Local)
	}
	return SetLocalNotReady(ctx, client, "Starting", "the kubelet is starting")
}

// SetLocalNotReady marks Local as not Ready and records the reason.
func SetLocalNotReady(ctx context.Context, client kubernetes.Interface, reason, message string) error {
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, Local, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("updating node %s: %w", Local, err)
	}
	return nil
}

// MoveLocal sets the port of a new kubelet in the node Local after the previous kubelet has ended.
func MoveLocal(ctx context.Context, client kubernetes.Interface, port int) error {
	if err := movePort(ctx, client, Local, port); err != nil {
		return fmt.Errorf("updating node %s: %w", Local, err)
	}
	return nil
}

// RemoveLocal deletes the node Local of an earlier start, and reports whether the
// node is gone. RemoveLocal leaves the node alone if koboshi did not create it.
func RemoveLocal(ctx context.Context, client kubernetes.Interface) (removed bool, err error) {
	node, err := client.CoreV1().Nodes().Get(ctx, Local, metav1.GetOptions{})
	switch {
	case err == nil && node.Labels[OwnedLabel] != localNode:
		return false, nil
	case err == nil:
		err = client.CoreV1().Nodes().Delete(ctx, Local, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(node.UID))})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("removing node %s: %w", Local, err)
	}
	return true, nil
}

// RemoveLocalPods deletes the Pods of Local after the node has been removed, because no kubelet is
// left to report that they have ended. Without RemoveLocalPods, these Pods would appear to be
// running until upstream's garbage collector deletes them a minute later. Call RemoveLocalPods when
// the simulated nodes are running, because the Pods' replacements need nodes.
func RemoveLocalPods(ctx context.Context, client kubernetes.Interface) error {
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + Local})
	if err != nil {
		return fmt.Errorf("listing the pods of node %s: %w", Local, err)
	}
	for _, pod := range pods.Items {
		err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("removing pod %s/%s of node %s: %w", pod.Namespace, pod.Name, Local, err)
		}
	}
	return nil
}

// newLocal returns the node Local with the fields that a kubelet does not report. newLocal also
// sets the addresses, because a kubelet accepts a loopback address as its own only if its Node
// already has that address.
func newLocal() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: Local,
			Labels: map[string]string{
				OwnedLabel:             localNode,
				corev1.LabelHostname:   Local,
				corev1.LabelOSStable:   runtime.GOOS,
				corev1.LabelArchStable: runtime.GOARCH,
			},
		},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
				{Type: corev1.NodeHostName, Address: Local},
			},
		},
	}
}
