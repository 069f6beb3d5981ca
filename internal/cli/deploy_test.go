package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubectl/pkg/cmd/apply"

	"github.com/koboshi-dev/koboshi/internal/deploy/inventory"
)

// The test is here, and not in the package of the inventory, because this package links kubectl
// anyway.
func TestTheInventoryOfDeployHasTheLabelsOfKubectl(t *testing.T) {
	parent := &apply.ApplySetParentRef{Name: "koboshi-deploy-sea", Namespace: "lake", RESTMapping: &meta.RESTMapping{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
	}}
	want := []string{
		apply.NewApplySet(parent, apply.ApplySetTooling{}, nil, nil).ID(), apply.ApplysetPartOfLabel, apply.ApplySetParentIDLabel,
		apply.ApplySetToolingAnnotation, apply.ApplySetGKsAnnotation, apply.ApplySetAdditionalNamespacesAnnotation,
	}
	got := []string{
		inventory.ID("lake", "koboshi-deploy-sea"), inventory.PartOf, inventory.ParentID,
		inventory.Tooling, inventory.GroupKinds, inventory.Namespaces,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAWrongCallOfDeployIsRefusedBeforeTheClusterIsAsked(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	manifest := filepath.Join(dir, "install.yaml")
	if err := os.WriteFile(manifest, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no manifest":             {nil, "make dist/install.yaml with koboshi ship"},
		"an unknown format":       {[]string{"-o", "yaml"}, `unknown output format "yaml"`},
		"a client's dry run":      {[]string{"--dry-run", "client"}, "use --dry-run=server"},
		"a deletion that is none": {[]string{"--delete", "--diff"}, "cannot be combined with --diff"},
		"two outputs":             {[]string{"--diff", "-o", "json"}, "cannot be combined with -o"},
		"an argument":             {[]string{"now"}, "takes no arguments"},
		"no kubeconfig":           {[]string{"-f", manifest, "--kubeconfig", filepath.Join(dir, "missing")}, "correct --kubeconfig or --context"},
		"no such context":         {[]string{"-f", manifest, "--context", "nowhere"}, "correct --kubeconfig or --context"},
	} {
		code, _, messages := run(t, append([]string{"deploy"}, c.args...)...)
		if code != exitUsage || !strings.Contains(messages, c.want) {
			t.Errorf("%s: exit code %d, %s", name, code, messages)
		}
	}
}
