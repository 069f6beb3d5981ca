package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// quayPolicies holds the markers of two rules: one depends on the rights of a user, the other
// applies to deletions. No rule in a CRD can express either.
const quayPolicies = `// +koboshi:policy:name=text,expression="object.spec.text == oldObject.spec.text || authorizer.requestResource.check('transfer').allowed()",message="only those who may transfer quays change the text",reason=forbidden,operations=update
// +koboshi:policy:name=kept,expression="!has(oldObject.metadata.labels) || !('kept' in oldObject.metadata.labels)",messageExpression="oldObject.metadata.name + ' is kept'",operations=delete
`

// kustomize adds a prefix to the names. It also adds a namespace, because it treats the policies as
// namespaced objects.
const quayKustomization = `namespace: default
namePrefix: quay-
resources:
- ../config/crd
- ../config/policy
`

func TestGeneratedPoliciesAreEnforced(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.quays(t)
	p.apply(t, "apiVersion: ports.example.com/v1\nkind: Quay\nmetadata: {name: north, namespace: "+ns+", labels: {kept: ''}}\nspec: {text: first}\n")

	p.allow(t, ns, "edits", "get,patch")
	patch := 0
	edit := func() error {
		patch++ // every patch changes the object
		return p.quay(ns, "patch", "north", "--as=ann", "--type=merge", fmt.Sprintf(`--patch={"spec":{"text":"%d"}}`, patch))
	}
	eventually(t, "ann cannot change the text", func(context.Context) error {
		return isRefusal(edit(), "ValidatingAdmissionPolicy 'quay-text' with binding 'quay-text' denied request: only those who may transfer quays change the text")
	})
	if err := p.quay(ns, "label", "north", "--as=ann", "side=left"); err != nil {
		t.Errorf("the policy refuses other changes: %v", err)
	}
	p.allow(t, ns, "transfers", "transfer")
	eventually(t, "ann can transfer quays", func(context.Context) error { return edit() })

	eventually(t, "north is kept", func(context.Context) error {
		return isRefusal(p.quay(ns, "delete", "north", "--dry-run=server"), "north is kept")
	})
	for _, args := range [][]string{{"label", "north", "kept-"}, {"delete", "north"}} {
		if err := p.quay(ns, args[0], args[1:]...); err != nil {
			t.Error(err)
		}
	}
}

// quays generates the CRD and the policies of a project, and installs them.
func (p *plane) quays(t *testing.T) {
	t.Helper()
	h := newHarbour(t)
	h.must(koboshi, "create", "api", "--group", "ports", "--version", "v1", "--kind", "Quay", "--make=false")
	path := filepath.Join(h.dir, "api", "v1", "quay_types.go")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const root = "// +kubebuilder:object:root=true\n"
	for name, text := range map[string]string{
		path: strings.Replace(string(data), root, root+quayPolicies, 1),
		filepath.Join(h.dir, "config", "policy", "kustomization.yaml"): "resources:\n- manifests.yaml\n",
		filepath.Join(h.dir, "deploy", "kustomization.yaml"):           quayKustomization,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.must(koboshi, "generate")
	manifests := h.must(koboshi, "kubectl", "kustomize", "deploy")
	p.apply(t, manifests)
	t.Cleanup(func() {
		if out, err := p.tryKubectl(manifests, "delete", "-f", "-", "--wait=false"); err != nil {
			t.Logf("deleting the quays: %v\n%s", err, out)
		}
	})
	p.kubectl(t, "wait", "--for=condition=Established", "crd/quays.ports.example.com")
}

// allow lets the user ann use verbs on quays.
func (p *plane) allow(t *testing.T, ns, role, verbs string) {
	t.Helper()
	p.kubectl(t, "create", "role", role, "-n", ns, "--verb="+verbs, "--resource=quays.ports.example.com")
	p.kubectl(t, "create", "rolebinding", role, "-n", ns, "--role="+role, "--user=ann")
}

// quay calls kubectl for a quay.
func (p *plane) quay(ns, verb string, args ...string) error {
	out, err := p.tryKubectl("", append([]string{verb, "-n", ns, "quays.ports.example.com"}, args...)...)
	if err != nil {
		return fmt.Errorf("kubectl %s %s: %w\n%s", verb, strings.Join(args, " "), err, out)
	}
	return nil
}
