package conformance

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// twoDaemonSets has a DaemonSet of programs, and another DaemonSet that tolerates
// everything.
const twoDaemonSets = `
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: real, namespace: $NS}
spec:
  selector: {matchLabels: {app: real}}
  template:
    metadata: {labels: {app: real}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: "conformance/web:1"}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: $NS}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: agent, image: agent}]
`

func TestProgramsOfADaemonSetRunAndADaemonSetWithoutProgramsIsComplete(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, twoDaemonSets)
	for name, nodes := range map[string]int32{"real": 3, "agent": 2} {
		eventually(t, "DaemonSet "+name, func(ctx context.Context) error {
			set, err := p.client.AppsV1().DaemonSets(ns).Get(ctx, name, metav1.GetOptions{})
			if err == nil && (set.Status.DesiredNumberScheduled != nodes || set.Status.NumberAvailable != nodes) {
				err = fmt.Errorf("not available on %d nodes: %+v", nodes, set.Status)
			}
			return err
		})
	}
	pods, err := p.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=local"})
	if err != nil || len(pods.Items) != 1 || pods.Items[0].Labels["app"] != "real" {
		t.Errorf("on node local: %v (%v)", pods, err)
	}
}

const twenty = `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: twenty, namespace: $NS}
spec:
  replicas: 20
  selector: {matchLabels: {app: twenty}}
  template:
    metadata: {labels: {app: twenty}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: sh, image: conformance/sh, args: ["-c", "exec sleep 1000"]}]
`

// Upstream's kubelet pulls at most five images per second from a registry, and delays
// further ones.
func TestProgramsOfManyPodsStartAtOnce(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.waitForRootCA(t, ns) // without this ConfigMap, a Pod gets a warning
	p.applyIn(t, ns, twenty)
	eventually(t, "20 Pods", func(ctx context.Context) error {
		pods, err := p.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=local,status.phase=Running"})
		if err == nil && len(pods.Items) != 20 {
			err = fmt.Errorf("%d run", len(pods.Items))
		}
		return err
	})
	events, err := p.client.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		t.Errorf("%s %s: %s", e.InvolvedObject.Name, e.Reason, e.Message)
	}
}
