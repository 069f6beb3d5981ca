package ready_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
)

func object(t *testing.T, text string) unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(strings.TrimSpace(text)))
	if err != nil {
		t.Fatal(err)
	}
	// As from the API server, numbers are integers.
	var u unstructured.Unstructured
	if err := utiljson.Unmarshal(data, &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestThePodsSayWhyAWorkloadIsNotCurrent(t *testing.T) {
	for want, status := range map[string]string{
		"Pod p: Unschedulable: 0/1 nodes are available":                      `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/1 nodes are available}]}`,
		"Pod p: container manager: ImagePullBackOff: Back-off pulling image": `{phase: Pending, containerStatuses: [{name: manager, state: {waiting: {reason: ImagePullBackOff, message: Back-off pulling image}}}]}`,
		"Pod p: container manager: CrashLoopBackOff (its last exit code was 2)": `{phase: Running, containerStatuses: [
			{name: manager, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 2}}}]}`,
		"Pod p: container manager: it runs, but is not ready":       `{phase: Running, containerStatuses: [{name: manager, ready: false, state: {running: {}}}]}`,
		"Pod p: container setup: it ended with exit code 1 (Error)": `{phase: Pending, initContainerStatuses: [{name: setup, state: {terminated: {exitCode: 1, reason: Error}}}]}`,
		"Pod p: Evicted: The node was low on resource: memory.":     `{phase: Failed, reason: Evicted, message: "The node was low on resource: memory."}`,
	} {
		fine := object(t, `{metadata: {name: fine}, status: {phase: Running, containerStatuses: [{name: manager, ready: true, state: {running: {}}}]}}`)
		starting := object(t, `{metadata: {name: starting}, status: {phase: Pending, containerStatuses: [{name: manager, state: {waiting: {reason: ContainerCreating}}}]}}`)
		leaving := object(t, `{metadata: {name: leaving, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Failed, reason: Gone}}`)
		if got := ready.PodReason([]unstructured.Unstructured{fine, starting, leaving, object(t, "{metadata: {name: p}, status: "+status+"}")}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAnObjectIsCurrentWhenItsControllerHasSeenIt(t *testing.T) {
	const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, generation: 2}
spec: {replicas: 1}
status: `
	for name, c := range map[string]struct{ text, want string }{
		"current":         {deployment + `{observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True"}]}`, ""},
		"not seen":        {deployment + `{observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}`, "generation is 2, but latest observed generation is 1"},
		"quota":           {deployment + `{observedGeneration: 2, conditions: [{type: ReplicaFailure, status: "True", message: exceeded quota}]}`, "exceeded quota"},
		"no status":       {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", ""},
		"another's Ready": {`{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a}, status: {conditions: [{type: Ready, status: "False", message: issuing}]}}`, "issuing"},
	} {
		u := object(t, c.text)
		if got := ready.Reason(&u); !strings.Contains(strings.ToLower(got), c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAWaitThatEndsTooEarlyNamesWhatIsMissing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	id := cluster.ID{Kind: schema.GroupKind{Kind: "Deployment"}, Namespace: "sea", Name: "manager"}
	var reports int
	err := ready.Until(ctx, "these objects are not current", func([]ready.Pending) { reports++ }, func(context.Context) []ready.Pending {
		if reports > 0 {
			cancel()
			return []ready.Pending{{ID: id, Reason: "context canceled"}}
		}
		return []ready.Pending{{ID: id, Reason: "no node"}}
	})
	var missing *ready.NotReady
	if !errors.As(err, &missing) || err.Error() != "these objects are not current:\n  Deployment sea/manager: no node" || reports != 1 {
		t.Errorf("%v after %d reports", err, reports)
	}
}
