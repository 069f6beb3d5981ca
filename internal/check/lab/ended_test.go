package lab

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

const gateConfig = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gate}
webhooks:
- name: gate.example.com
  rules: [{apiGroups: [example.com], apiVersions: [v1], resources: [gates], operations: [CREATE]}]
  clientConfig: {url: "https://127.0.0.1:1/"}
  admissionReviewVersions: [v1]
  sideEffects: None
`

// exitsAtOnce runs Learn with /bin/true as the controller, which exits before it serves its
// webhooks.
func exitsAtOnce(t *testing.T, l *Lab) {
	l.config.Subject.Webhooks = []unstructured.Unstructured{*fromYAML(t, gateConfig)}
	defer func() { l.config.Subject.Webhooks = nil }()
	_, err := l.Learn(t.Context(), &scenario.Scenario{
		Name: "gate", Rest: scenario.Rest{Timeout: scenario.Duration(2 * time.Second)},
		Steps: []scenario.Step{{Name: "create", Apply: []scenario.Manifest{{Object: state.Object(fromYAML(t, samples[0]).Object)}}}},
	}, 1, false)
	var gone *GoneError
	if !errors.As(err, &gone) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}
