package project_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/project"
)

func TestAnOptionThatWouldHaveNoEffectIsRefused(t *testing.T) {
	command := []string{"sh"}
	for want, o := range map[string]project.Options{
		"name it with --helm, or omit -f":              {Values: []string{"values.yaml"}},
		"name it with --helm, or omit --set":           {Set: []string{"a=b"}},
		"--kustomization and --helm both":              {Kustomization: "config", Helm: "chart"},
		"--kustomization and --manifests both":         {Kustomization: "config", Manifests: []string{"install.yaml"}},
		"--main names the manager to build":            {Main: "cmd", Command: command},
		"--webhook-port has no effect":                 {CRDs: "config/crd", WebhookPort: 8443, Command: command},
		"which has: Deployment boats-system":           {Deployment: "other"},
		"contains no service account, role or binding": {RBAC: "config/crd"},
		"contains no kustomization.yaml; name":         {Kustomization: "cmd"},
	} {
		o.Dir = boats(t, nil)
		if _, err := project.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
}

func TestAKustomizationOfACommandWithCRDsIsRead(t *testing.T) {
	dir := boats(t, map[string]string{"more/ships.yaml": otherCRD})
	p, err := project.Open(t.Context(), project.Options{Dir: dir, Kustomization: "config/default", CRDs: "more", Command: []string{"sh"}})
	if err != nil {
		t.Fatal(err)
	}
	got := names(p.Subject.Install)
	if !slices.Contains(got, "CustomResourceDefinition /ships.sea.example.com") || slices.Contains(got, "CustomResourceDefinition /captains.sea.example.com") || p.Subject.Identity.Namespace != "boats-system" {
		t.Errorf("the identity is %v, and the installation %q", p.Subject.Identity, got)
	}
}

func TestEveryFlagThatNamesStandardInputReadsIt(t *testing.T) {
	for flag, o := range map[string]project.Options{
		"--manifests": {Manifests: []string{"-"}}, "--given": {Given: []string{"-"}}, "--with-crds": {WithCRDs: []string{"-"}},
		"--crds": {CRDs: "-"}, "--rbac": {RBAC: "-"}, "--webhooks": {Webhooks: "-"},
	} {
		if !o.ReadsStdin() {
			t.Errorf("%s - does not count as standard input", flag)
		}
	}
	if (project.Options{CRDs: "crds", Manifests: []string{"a.yaml"}}).ReadsStdin() {
		t.Error("files count as standard input")
	}
	o := project.Options{CRDs: "-", Command: []string{"sh"}, Stdin: strings.NewReader(otherCRD)}
	p, err := project.Open(t.Context(), o)
	if err != nil || !slices.Contains(names(p.Subject.Install), "CustomResourceDefinition /ships.sea.example.com") {
		t.Errorf("--crds -: %v", err)
	}
}

func TestVariablesOfTheEnvironmentAreTaken(t *testing.T) {
	t.Setenv("BOAT", "small")
	if got, err := project.Environment([]string{"BOAT", "CREW=2", "EMPTY="}); err != nil || !slices.Equal(got, []string{"BOAT=small", "CREW=2", "EMPTY="}) {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Unsetenv("BOAT"); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"BOAT", "=x", "a b=x"} {
		if _, err := project.Environment([]string{wrong}); err == nil {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
