package olm_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/project"
	"github.com/koboshi-dev/koboshi/internal/ship/install"
	"github.com/koboshi-dev/koboshi/internal/ship/olm"
)

// allowed has all differences between what OLM installs from a bundle and what install.yaml installs.
// The lines are those of facts, after - if only install.yaml has it, and after + if only OLM has it.
var allowed = []struct{ line, why string }{
	{`^- Namespace `, "a person chooses the namespace when they install an operator by OLM"},
	{`^- (Issuer|Certificate) `, "OLM issues the certificates of webhooks"},
	{`^- \S+ \S+\.metadata\.annotations\.cert-manager\.io/inject-ca-from `, "OLM inserts its own authority"},
	{`^- ServiceAccount \S+\.metadata\.labels\.`, "OLM makes ServiceAccounts from their names"},
	{`^[-+] Deployment \S+-controller-manager\.spec\.template\.spec\.volumes\[(metrics-cert|webhook-cert|apiservice-cert)\]`, "the Secrets of cert-manager do not exist, and OLM mounts its own"},
	{`^[-+] Deployment \S+-controller-manager\.spec\.template\.spec\.containers\[manager\]\.volumeMounts\[(metrics-cert|webhook-cert|apiservice-cert)\]`, "the same"},
	{`^- .*\.args\[\] = "--metrics-cert-dir=/etc/`, "without a certificate, the manager makes one for its metrics"},
	{`^- .*\.args\[\] = "--webhook-cert-dir=/etc/`, "OLM mounts the certificate in a folder of its own"},
	{`^\+ .*\.args\[\] = "--webhook-cert-dir=/tmp/k8s-webhook-server/serving-certs"`, "the same"},
	{`^\+ Service \S+-controller-manager-service\.`, "OLM makes a Service for webhooks"},
	{`^[-+] CustomResourceDefinition \S+\.spec\.conversion\.webhook\.clientConfig\.service\.(name|port) `, "the same; it has the port of the installation's Service"},
	{`^[-+] (Mutating|Validating)WebhookConfiguration \S+\.(metadata|apiVersion|kind)`, "OLM makes a configuration for each webhook, with a name of its own"},
	{`^[-+] (Mutating|Validating)WebhookConfiguration \S+\.webhooks\[\S+\.koboshi\.dev\]\.clientConfig\.service\.(name|port) `, "OLM makes a Service for webhooks"},
	{`^- (Mutating|Validating)WebhookConfiguration \S+\.webhooks\[\S+\.koboshi\.dev\]\.matchConditions\[`, "a ClusterServiceVersion has no field for them; a note says so"},
}

// operator returns the options of a bundle for one of our operators.
func operator(t *testing.T, name string) olm.Options {
	t.Helper()
	p, err := project.Load(t.Context(), project.Options{Dir: filepath.Join("..", "..", "..", "operators", name)})
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := p.Installation()
	if err != nil {
		t.Fatal(err)
	}
	container, ok := p.Container()
	if !ok {
		t.Fatal("the operator has no container")
	}
	image := "registry.example.com/" + name + ":v1.2.0@sha256:" + strings.Repeat("0", 64)
	install.SetImage(all, container.Image, image)
	o := olm.Options{
		Package: p.Name, Version: "1.2.0", Objects: all, Image: image, Repository: "https://github.com/koboshi-dev/koboshi",
		Platforms: []string{"linux/amd64"}, Channels: []string{"alpha"}, Created: time.Unix(0, 0),
	}
	for _, s := range p.Samples {
		o.Samples = append(o.Samples, s.Objects...)
	}
	return o
}

// differences returns the lines in which two lists of objects differ.
func differences(t *testing.T, installed, expanded []unstructured.Unstructured) (lines []string) {
	t.Helper()
	a, b := facts(t, perWebhook(installed)), facts(t, perWebhook(expanded))
	for line := range a {
		if !b[line] {
			lines = append(lines, "- "+line)
		}
	}
	for line := range b {
		if !a[line] {
			lines = append(lines, "+ "+line)
		}
	}
	slices.Sort(lines)
	return lines
}

// perWebhook gives webhook configurations one name, because OLM makes one for each webhook. Their
// webhooks are then compared by name.
func perWebhook(objects []unstructured.Unstructured) []unstructured.Unstructured {
	objects = slices.Clone(objects)
	for i, o := range objects {
		if strings.HasSuffix(o.GetKind(), "WebhookConfiguration") {
			objects[i] = *o.DeepCopy()
			objects[i].SetName("all")
		}
	}
	return objects
}

func TestABundleInstallsWhatTheManifestInstalls(t *testing.T) {
	used := map[int]bool{}
	var patterns []*regexp.Regexp
	for _, a := range allowed {
		patterns = append(patterns, regexp.MustCompile(a.line))
	}
	for _, name := range []string{"storagebucket", "markdownview", "foo"} {
		o := operator(t, name)
		b := mustMake(t, o)
		for _, line := range differences(t, o.Objects, expand(t, b, name+"-system")) {
			i := slices.IndexFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(line) })
			if i < 0 {
				t.Errorf("%s: %s", name, line)
			}
			used[i] = true
		}
	}
	for i, a := range allowed {
		if !used[i] {
			t.Errorf("no bundle has the difference %s (%s); remove it from the list", a.line, a.why)
		}
	}
}

// A comparison that finds nothing would accept every bundle.
func TestTheComparisonSeesWhatABundleLoses(t *testing.T) {
	o := operator(t, "storagebucket")
	b := mustMake(t, o)
	whole := differences(t, o.Objects, expand(t, b, "storagebucket-system"))
	for kind, name := range map[string]string{
		"Deployment": "storagebucket-controller-manager", "ClusterRoleBinding": "storagebucket-manager-rolebinding", "PriorityClass": "storagebucket-manager",
	} {
		all := slices.DeleteFunc(expand(t, b, "storagebucket-system"), func(x unstructured.Unstructured) bool {
			return x.GetKind() == kind && (x.GetName() == name || kind == "ClusterRoleBinding")
		})
		if lines := differences(t, o.Objects, all); len(lines) <= len(whole) {
			t.Errorf("a bundle without %s %s has only these differences: %q", kind, name, lines)
		}
	}
}

func TestNotesNameWhatIsDifferentWithOLM(t *testing.T) {
	for name, want := range map[string][]string{
		"storagebucket": {"Issuer storagebucket-selfsigned-issuer", "--metrics-cert-dir=/etc/storagebucket/metrics"},
		"markdownview":  {"matchConditions", "--metrics-cert-dir=/etc/markdownview/metrics"},
		"foo":           nil,
	} {
		notes := strings.Join(mustMake(t, operator(t, name)).Notes, "\n")
		for _, text := range want {
			if !strings.Contains(notes, text) {
				t.Errorf("%s: %q is missing in\n%s", name, text, notes)
			}
		}
		if want == nil && notes != "" {
			t.Errorf("%s: %s", name, notes)
		}
	}
}

func TestThePartsOfABundleAreWhereOLMExpectsThem(t *testing.T) {
	b := mustMake(t, operator(t, "foo"))
	const prefix = "operators.operatorframework.io.bundle."
	annotations := at[map[string]any](objects(t, string(b.Files["metadata/annotations.yaml"]))[0].Object, "annotations")
	for key, want := range map[string]string{
		"mediatype.v1": "registry+v1", "manifests.v1": "manifests/", "metadata.v1": "metadata/", "package.v1": "foo", "channels.v1": "alpha", "channel.default.v1": "alpha",
	} {
		if annotations[prefix+key] != want || b.Labels[prefix+key] != want {
			t.Errorf("%s: %v and %v, want %s", key, annotations[prefix+key], b.Labels[prefix+key], want)
		}
	}
	want := []string{
		"manifests/foo-controller-manager-metrics-service_v1_service.yaml",
		"manifests/foo-controller-manager_policy_v1_poddisruptionbudget.yaml",
		"manifests/foo-metrics-reader_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"manifests/foo.clusterserviceversion.yaml",
		"manifests/sample.koboshi.dev_foos.yaml",
		"metadata/annotations.yaml",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(b.Files))); diff != "" {
		t.Error(diff)
	}
}
