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
	// The values of OwnedLabel for simulated nodes and for the local one.
	simulatedNode, localNode = "simulated", "local"
)

// EnsureLocal creates the node Local, not Ready until its kubelet reports
// otherwise. A node of an earlier start keeps its Pods.
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

// takeOverLocal marks a node of an earlier start as not Ready.
func takeOverLocal(ctx context.Context, client kubernetes.Interface) error {
	node, err := client.CoreV1().Nodes().Get(ctx, Local, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading node %s: %w", Local, err)
	}
	if node.Labels[OwnedLabel] != localNode {
		return fmt.Errorf("node %s already exists and was not created by koboshi; delete it, or start without programs", Local)
	}
	return SetLocalNotReady(ctx, client, "Starting", "the kubelet starts")
}

// SetLocalNotReady records why Local is not Ready.
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

// RemoveLocal deletes the node Local of an earlier start. A node of that name
// that was created by someone else is left alone, and removed is false.
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

// RemoveLocalPods deletes the Pods of Local once the node is gone: no kubelet
// is left to report that they have ended. Upstream's garbage collector would
// delete them a minute later, and until then they would count as running. Their
// replacements need nodes that are already running.
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

// newLocal sets what a kubelet does not report by itself: no kubelet accepts a
// loopback address as its own unless its Node already has it.
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
