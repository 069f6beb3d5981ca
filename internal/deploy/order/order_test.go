package order_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/order"
)

const manifest = `apiVersion: sea.example.com/v1
kind: Ship
metadata: {name: first}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: ships}
---
# nothing but a comment
---
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: manager}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: manager}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec: {group: sea.example.com, scope: Namespaced, names: {kind: Ship}}
---
apiVersion: v1
kind: Namespace
metadata: {name: sea}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: serving}
`

func names(objects []*unstructured.Unstructured) (all []string) {
	for _, u := range objects {
		all = append(all, cluster.IDOf(u).String())
	}
	return all
}

func TestEachPhaseHasWhatTheNextOneNeeds(t *testing.T) {
	objects, err := order.Parse("manifest", []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	p := order.Split(objects)
	want := [][]string{
		{"Namespace sea"}, {"CustomResourceDefinition ships.sea.example.com"},
		{"ServiceAccount manager", "Deployment manager", "Certificate serving"},
		{"ValidatingWebhookConfiguration ships"}, {"Ship first"},
	}
	got := [][]string{names(p.Namespaces), names(p.CRDs), names(p.Main), names(p.Webhooks), names(p.Custom)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(p.All()) != len(objects) {
		t.Errorf("%v", names(p.All()))
	}
}

func TestManifestsAreReadFromFilesFoldersAndTheInput(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "b.json": `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}`,
		"notes.txt": "no manifest",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	input := strings.NewReader("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}")
	objects, err := order.Read([]string{dir, "-", filepath.Join(dir, "a.yaml")}, input)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range objects {
		got = append(got, u.GetName())
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "a"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAManifestThatCannotBeAppliedTwiceIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no name": {"{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}", "has no name"},
		"no kind": {"{apiVersion: v1, metadata: {name: a}}", "'Kind' is missing"},
		"no YAML": {"a: [", "reading file"},
	} {
		if _, err := order.Parse("file", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := order.Read([]string{"-"}, strings.NewReader("# empty\n")); err == nil || !strings.Contains(err.Error(), "no objects") {
		t.Errorf("%v", err)
	}
}
