package overrides

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

// greedy returns a spec that sets every field that a policy allows or denies.
func greedy() *viewv1.MarkdownViewSpec {
	return &viewv1.MarkdownViewSpec{
		Service: &viewv1.ServiceSettings{Type: "LoadBalancer", Annotations: map[string]string{"lb.example.com/public": "true"}},
		Ingress: &viewv1.IngressSettings{Host: "example.org", Annotations: map[string]string{
			"cert-manager.io/cluster-issuer": "letsencrypt", "nginx.ingress.kubernetes.io/server-snippet": "x",
		}},
		HTTPRoute: &viewv1.HTTPRouteSettings{Annotations: map[string]string{"a.example.com/b": "c"}},
		Pod: &viewv1.PodSettings{
			Labels: map[string]string{"app": "shop"}, Annotations: map[string]string{"sidecar.istio.io/inject": "true"},
			PriorityClassName: "system-cluster-critical",
			Tolerations:       []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane"}, {Operator: "Exists"}},
			NodeSelector:      map[string]string{"disk": "ssd"},
		},
	}
}

func denied(t *testing.T, policy string) []string {
	t.Helper()
	p, err := Parse(strings.FieldsFunc(policy, func(r rune) bool { return r == ',' })...)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range p.Denied(greedy()) {
		names = append(names, d.String())
	}
	return names
}

func TestPolicyDeniesWhatItDoesNotName(t *testing.T) {
	everything := []string{
		"spec.service.annotations[lb.example.com/public]", "spec.service.type[LoadBalancer]",
		"spec.ingress.annotations[cert-manager.io/cluster-issuer]", "spec.ingress.annotations[nginx.ingress.kubernetes.io/server-snippet]",
		"spec.httpRoute.annotations[a.example.com/b]", "spec.pod.labels[app]", "spec.pod.annotations[sidecar.istio.io/inject]",
		"spec.pod.priorityClassName[system-cluster-critical]",
		"spec.pod.tolerations[node-role.kubernetes.io/control-plane]", "spec.pod.tolerations[]",
	}
	for policy, want := range map[string][]string{
		"":  everything,
		"*": nil,
		"pod.labels,pod.annotations,pod.tolerations,pod.priorityClassName=batch-*,service.type,service.annotations,ingress.annotations=cert-manager.io/*,httpRoute.annotations": {
			"spec.ingress.annotations[nginx.ingress.kubernetes.io/server-snippet]", "spec.pod.priorityClassName[system-cluster-critical]",
		},
		"pod.tolerations=node-role.kubernetes.io/*,service.type=NodePort": append(slices.Clone(everything[:8]), everything[9]),
		Default: {
			"spec.service.annotations[lb.example.com/public]", "spec.ingress.annotations[nginx.ingress.kubernetes.io/server-snippet]",
			"spec.httpRoute.annotations[a.example.com/b]", "spec.pod.labels[app]", "spec.pod.annotations[sidecar.istio.io/inject]",
			"spec.pod.priorityClassName[system-cluster-critical]",
			"spec.pod.tolerations[node-role.kubernetes.io/control-plane]", "spec.pod.tolerations[]",
		},
	} {
		if diff := cmp.Diff(want, denied(t, policy)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", policy, diff)
		}
	}
}

func TestStripLeavesNothingThatIsDenied(t *testing.T) {
	for _, policy := range [][]string{nil, {"pod.labels"}, {"pod.tolerations=node-role.kubernetes.io/*", "ingress.annotations=cert-manager.io/*"}} {
		p, err := Parse(policy...)
		if err != nil {
			t.Fatal(err)
		}
		spec := greedy()
		p.Strip(spec)
		if left := p.Denied(spec); len(left) > 0 {
			t.Errorf("%v: %v is left", policy, left)
		}
		if spec.Pod.NodeSelector["disk"] != "ssd" || spec.Ingress.Host != "example.org" {
			t.Errorf("%v: fields that no policy governs changed: %+v", policy, spec)
		}
	}
	var open *Policy
	spec := greedy()
	open.Strip(spec)
	if diff := cmp.Diff(greedy(), spec); diff != "" {
		t.Errorf("without a policy something changed:\n%s", diff)
	}
}

func TestUnknownFieldsAndBrokenPatternsAreRefused(t *testing.T) {
	for _, entry := range []string{"pod.image", "ingress", "pod.labels=", "pod.labels=[a"} {
		if _, err := Parse(entry); err == nil || !strings.Contains(err.Error(), strings.Split(entry, "=")[0]) {
			t.Errorf("%s: %v", entry, err)
		}
	}
}
