package v1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/overrides"
)

func TestASettingThatIsNotAllowedIsRefusedUnlessItWasThere(t *testing.T) {
	policy, err := overrides.Parse("ingress.annotations=cert-manager.io/*")
	if err != nil {
		t.Fatal(err)
	}
	v := &validator{options: Options{Overrides: policy}}
	site := func(title string, labels map[string]string) *viewv1.MarkdownView {
		return &viewv1.MarkdownView{ObjectMeta: metav1.ObjectMeta{Name: "site"}, Spec: viewv1.MarkdownViewSpec{
			Title: title, Markdowns: map[string]string{"a.md": "# A"}, Pod: &viewv1.PodSettings{Labels: labels},
			Ingress: &viewv1.IngressSettings{Host: "example.org", Annotations: map[string]string{"cert-manager.io/issuer": "x"}},
		}}
	}
	const refused = `MarkdownView.view.koboshi.dev "site" is invalid: spec.pod.labels[app]: Forbidden: ` +
		"the operator does not allow this setting; remove it, or ask the administrator to add it to --author-overrides"
	old := site("", map[string]string{"app": "shop"})
	if _, err := v.ValidateCreate(t.Context(), old); err == nil || err.Error() != refused {
		t.Errorf("created: %v", err)
	}
	if _, err := v.ValidateUpdate(t.Context(), site("", nil), old); err == nil || err.Error() != refused {
		t.Errorf("added: %v", err)
	}
	warnings, err := v.ValidateUpdate(t.Context(), old, site("Other", map[string]string{"app": "shop"}))
	if err != nil {
		t.Errorf("edited: %v", err)
	}
	if diff := cmp.Diff([]string{"spec.pod.labels[app]: the operator does not currently allow this setting and ignores it"}, []string(warnings)); diff != "" {
		t.Error(diff)
	}
	if warnings, err := v.ValidateCreate(t.Context(), site("", nil)); err != nil || len(warnings) > 0 {
		t.Errorf("allowed: %v %v", warnings, err)
	}
}
