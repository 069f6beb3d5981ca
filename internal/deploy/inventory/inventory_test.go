package inventory

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
)

func empty(namespace, name string) *Inventory {
	return &Inventory{
		secret: cluster.ID{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: namespace, Name: name},
		kinds:  sets.New[schema.GroupKind](), namespaces: sets.New[string](),
	}
}

func TestAParentOfAnotherToolIsRefused(t *testing.T) {
	i := empty("sea", "koboshi-deploy-sea")
	for name, c := range map[string]struct{ tool, id, want string }{
		"ours":            {"koboshi/v1", i.ID(), ""},
		"a later version": {"koboshi/v2", i.ID(), ""},
		"kubectl's":       {"kubectl/v1.37", i.ID(), "the inventory of another tool, kubectl"},
		"a copy":          {"koboshi/v1", empty("lake", "koboshi-deploy-sea").ID(), "is not an inventory"},
		"a plain Secret":  {"", "", "is not an inventory"},
	} {
		parent := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{manifestKey: "AQ=="}}}
		parent.SetAnnotations(map[string]string{Tooling: c.tool, GroupKinds: "Deployment.apps,Secret"})
		parent.SetLabels(map[string]string{ParentID: c.id})
		err := i.parse(parent)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !i.kinds.HasAll(schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Kind: "Secret"}) || string(i.Manifest) != "\x01" || !i.namespaces.Has("sea") {
		t.Errorf("%+v", i)
	}
}

func TestAnObjectOfAnotherDeploymentIsRefused(t *testing.T) {
	i := empty("sea", "a")
	objects := make([]unstructured.Unstructured, 2)
	for n, owner := range []*Inventory{i, empty("sea", "b")} {
		objects[n] = unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap"}}
		owner.Label(objects[n : n+1])
	}
	if err := i.CheckOwner(&objects[0]); err != nil {
		t.Error(err)
	}
	if err := i.CheckOwner(&objects[1]); err == nil || !strings.Contains(err.Error(), "belongs to another deployment") {
		t.Errorf("%v", err)
	}
}

func TestAKeptManifestIsReadAsItWasWritten(t *testing.T) {
	object := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
	kept, err := Compress([]unstructured.Unstructured{object})
	if err != nil {
		t.Fatal(err)
	}
	text, err := Decompress(kept)
	if want := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v", text, err)
	}
}

func TestAManifestThatDoesNotFitIntoASecretIsNotKept(t *testing.T) {
	var data strings.Builder
	for n := 0; data.Len() < 2*maxManifest; n++ {
		_, _ = fmt.Fprintf(&data, "%x", sha256.Sum256([]byte{byte(n), byte(n >> 8), byte(n >> 16)}))
	}
	object := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"large": data.String()}}}
	kept, err := Compress([]unstructured.Unstructured{object})
	if err != nil || kept != nil {
		t.Errorf("%d bytes are kept, %v", len(kept), err)
	}
}
