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
	// Local is the name of the node that is this machine.
	Local = "local"
	// What OwnedLabel says of the nodes that are not this machine, and of the
	// one that is.
	simulatedNode, localNode = "simulated", "local"
)

// EnsureLocal makes the plane have the node Local, not Ready until its kubelet
// says otherwise. A node of an earlier start keeps its Pods.
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

// takeOverLocal says of a node of an earlier start that it is not Ready any more.
func takeOverLocal(ctx context.Context, client kubernetes.Interface) error {
	node, err := client.CoreV1().Nodes().Get(ctx, Local, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading node %s: %w", Local, err)
	}
	if node.Labels[OwnedLabel] != localNode {
		return fmt.Errorf("there is a node %s already that somebody else created; delete it, or start without programs to run", Local)
	}
	return SetLocalNotReady(ctx, client, "Starting", "the kubelet starts")
}

// SetLocalNotReady says why Local is not Ready.
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
// that somebody else created is left alone, and removed is false.
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

// RemoveLocalPods deletes the Pods of Local once it is gone: nobody is left to
// say that they have ended. Upstream's garbage collector would, a minute later,
// and until then they would count as running. What replaces them is for nodes
// that must run by now.
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

// newLocal has what a kubelet does not say by itself: no kubelet takes an
// address on loopback for its own, unless it is told so by its Node.
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
