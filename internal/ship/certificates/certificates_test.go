package certificates_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/ship/certificates"
)

// objects parses YAML documents.
func objects(t *testing.T, text string) (all []unstructured.Unstructured) {
	t.Helper()
	for _, part := range strings.Split(text, "---\n") {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(part), &content); err != nil {
			t.Fatalf("%v\n%s", err, part)
		}
		if content != nil {
			all = append(all, unstructured.Unstructured{Object: content})
		}
	}
	return all
}

// example returns the files of an archive in testdata.
func example(t *testing.T, name string) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	return files
}

func manager(flags ...string) certificates.Manager {
	return certificates.Manager{Image: "sea:v1", HasFlag: func(name string) bool {
		for _, flag := range flags {
			if flag == name {
				return true
			}
		}
		return false
	}}
}

var all = manager("webhook-cert-path", "webhook-self-signed-secret", "webhook-service", "webhook-configurations")

func TestTheSourceOfCertificatesChangesOnlyWhatBelongsToIt(t *testing.T) {
	for name, source := range map[string]certificates.Source{
		"cert-manager-to-self-signed.txtar": certificates.SelfSigned,
		"none-to-self-signed.txtar":         certificates.SelfSigned,
		"none-to-cert-manager.txtar":        certificates.CertManager,
	} {
		files := example(t, name)
		got, err := certificates.Apply(objects(t, files["before.yaml"]), source, all)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(objects(t, files["after.yaml"]), got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		again, err := certificates.Apply(got, source, all)
		if err != nil {
			t.Errorf("%s: the second time: %v", name, err)
		}
		if diff := cmp.Diff(objects(t, files["after.yaml"]), again); diff != "" {
			t.Errorf("%s: the second time: %s", name, diff)
		}
	}
}

func TestCertManagerIsKeptAsConfigDefaultHasIt(t *testing.T) {
	before := example(t, "cert-manager-to-self-signed.txtar")["before.yaml"]
	got, err := certificates.Apply(objects(t, before), certificates.CertManager, all)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(objects(t, before), got); diff != "" {
		t.Error(diff)
	}
}

func TestAManagerOfAnOlderKubebuilderReadsItsCertificateInTheUsualFolder(t *testing.T) {
	files := example(t, "none-to-cert-manager.txtar")
	got, err := certificates.Apply(objects(t, files["before.yaml"]), certificates.CertManager, manager())
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(files["after.yaml"], ", --webhook-cert-path=/tmp/k8s-webhook-server/serving-certs", "", 1)
	if diff := cmp.Diff(objects(t, want), got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotBeChangedIsRefusedWithTheNextAction(t *testing.T) {
	with := example(t, "cert-manager-to-self-signed.txtar")["before.yaml"]
	without := example(t, "none-to-cert-manager.txtar")["before.yaml"]
	signed := example(t, "none-to-self-signed.txtar")["after.yaml"]
	for name, c := range map[string]struct {
		text   string
		source certificates.Source
		m      certificates.Manager
		want   string
	}{
		"a manager without the flags": {with, certificates.SelfSigned, manager("webhook-cert-path"), "certificates.NewServer"},
		"no webhooks":                 {"kind: ConfigMap\n", certificates.SelfSigned, all, "has no webhooks"},
		"no Service":                  {strings.Replace(without, "kind: Service\n", "kind: Endpoints\n", 1), certificates.CertManager, all, "which config/default does not have"},
		"another manager":             {strings.Replace(without, "image: sea:v1", "image: lake:v1", 1), certificates.CertManager, all, "correct its selector"},
		"two Services":                {strings.Replace(without, "name: sea-webhook-service, namespace: sea, path: /convert", "name: other, namespace: sea, path: /convert", 1), certificates.CertManager, all, "supports one"},
		"a certificate that another flag names": {
			strings.Replace(with, "--metrics-cert-path=", "--notify-cert-path=", 1), certificates.SelfSigned, all, "leave it out of config/default",
		},
		"a monitor that reads the Secret": {
			with + "---\n{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: m}, spec: {ca: {secret: {name: metrics-server-cert}}}}\n",
			certificates.SelfSigned, all, "the ServiceMonitor m uses the Secret metrics-server-cert",
		},
		"an API with an authority": {
			with + "---\n{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a, annotations: {cert-manager.io/inject-ca-from: sea/sea-serving-cert}}}\n",
			certificates.SelfSigned, all, "the APIService a needs an authority",
		},
		"a manager that is self-signed": {signed, certificates.CertManager, all, "remove --webhook-self-signed-secret"},
	} {
		_, err := certificates.Apply(objects(t, c.text), c.source, c.m)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := certificates.ParseSource("olm"); err == nil || !strings.Contains(err.Error(), "use cert-manager or self-signed") {
		t.Errorf("%v", err)
	}
}

// TestTheFlagsAreThoseOfTheScaffold compares the flags with the template that defines them.
func TestTheFlagsAreThoseOfTheScaffold(t *testing.T) {
	text, err := os.ReadFile("../../scaffold/_layers/webhooks/internal/certificates/options.go")
	if err != nil {
		t.Fatal(err)
	}
	signed := example(t, "none-to-self-signed.txtar")["after.yaml"]
	for _, flag := range []string{"webhook-self-signed-secret", "webhook-service", "webhook-configurations"} {
		if !strings.Contains(string(text), `"`+flag+`"`) || !strings.Contains(signed, "--"+flag+"=") {
			t.Errorf("--%s is not in the scaffold, or not in the manifest", flag)
		}
	}
}
