package nodes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestANodeOfAnEarlierStartIsKeptAndNotReady(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	if err := EnsureLocal(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	node, err := client.CoreV1().Nodes().Get(t.Context(), Local, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := node.Status.Addresses[0]; got.Type != corev1.NodeInternalIP || got.Address != "127.0.0.1" {
		t.Errorf("the API server would look for the kubelet at %+v", got)
	}
	node.UID = "of the first start"
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if _, err := client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Adding and removing simulated nodes must not affect the local node.
	if err := Ensure(t.Context(), client, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := EnsureLocal(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	node, err = client.CoreV1().Nodes().Get(t.Context(), Local, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if node.UID != "of the first start" {
		t.Error("the node was replaced, so the Pods of the original node are lost")
	}
	if ready := node.Status.Conditions[0]; len(node.Status.Conditions) != 1 || ready.Status != corev1.ConditionFalse || ready.Reason == "" {
		t.Errorf("conditions: %+v", node.Status.Conditions)
	}
}

func TestOnlyOurOwnNodeIsRemovedOrTaken(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.PodSpec{NodeName: Local}}
	own := fake.NewClientset(newLocal(), pod)
	foreign := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: Local}}, pod)
	for _, client := range []*fake.Clientset{own, foreign, fake.NewClientset()} {
		removed, err := RemoveLocal(t.Context(), client)
		if removed != (client != foreign) || err != nil {
			t.Errorf("removed: %t, %v", removed, err)
		}
		if removed {
			if err := RemoveLocalPods(t.Context(), client); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := own.CoreV1().Nodes().Get(t.Context(), Local, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("koboshi's own node still exists: %v", err)
	}
	if _, err := foreign.CoreV1().Nodes().Get(t.Context(), Local, metav1.GetOptions{}); err != nil {
		t.Errorf("another owner's node: %v", err)
	}
	if _, err := own.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Pod of koboshi's own node still exists: %v", err)
	}
	if _, err := foreign.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Errorf("another owner's pod: %v", err)
	}
	if EnsureLocal(t.Context(), foreign) == nil {
		t.Error("another owner's node was taken over")
	}
}
