package project_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project"
)

func TestTheOperatorsOfThisRepositoryAreRead(t *testing.T) {
	for name, hasWebhooks := range map[string]bool{"storagebucket": true, "markdownview": true, "foo": false} {
		t.Run(name, func(t *testing.T) {
			p := load(t, project.Options{Dir: filepath.Join("..", "..", "operators", name)})
			if p.Name != name || p.Main != "cmd" || !strings.HasSuffix(p.Module, "/operators/"+name) {
				t.Errorf("name %q, main %q, module %q", p.Name, p.Main, p.Module)
			}
			if want := (subject.ServiceAccount{Namespace: name + "-system", Name: name + "-controller-manager"}); p.Subject.Identity != want {
				t.Errorf("identity %v", p.Subject.Identity)
			}
			if len(p.CRDs) == 0 || len(p.Samples) == 0 || len(p.Subject.Roles) != 3 {
				t.Errorf("definitions %q, %d samples, %d roles", p.CRDs, len(p.Samples), len(p.Subject.Roles))
			}
			for _, o := range p.Subject.Install {
				if slices.Contains([]string{"Deployment", "Certificate", "Issuer", "MutatingWebhookConfiguration"}, o.GetKind()) {
					t.Errorf("%s %s is to be installed", o.GetKind(), o.GetName())
				}
			}
			webhooks := len(p.Subject.Webhooks)
			for _, o := range p.Subject.Install {
				if subject.NamesService(o) {
					webhooks++
				}
			}
			if webhooks > 0 != hasWebhooks {
				t.Errorf("%d webhooks were found; the operator has webhooks: %v", webhooks, hasWebhooks)
			}
			for _, note := range p.Notes {
				if !strings.HasPrefix(note, "left out") {
					t.Errorf("unexpected note: %s", note)
				}
			}
		})
	}
}

func TestAProjectWithoutConfigDefaultIsRead(t *testing.T) {
	p := load(t, project.Options{Dir: filepath.Join("..", "..", "conformance", "envtest", "testdata", "project")})
	if len(p.CRDs) != 1 || len(p.Samples) != 1 || len(p.Subject.Webhooks) != 2 {
		t.Errorf("definitions %q, %d samples, webhooks %q", p.CRDs, len(p.Samples), names(p.Subject.Webhooks))
	}
	if len(p.Subject.Roles) != 1 || p.Subject.Identity.Name == "" {
		t.Errorf("%d roles are bound to %v", len(p.Subject.Roles), p.Subject.Identity)
	}
	wantNotes(t, p, "no config/default", "no Deployment", "has no binding")
}
