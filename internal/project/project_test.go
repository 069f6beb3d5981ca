package project_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// boats copies the project in testdata and replaces some files. A file whose new content
// is empty is removed.
func boats(t *testing.T, changed map[string]string) string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "kubebuilder.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, file := range archive.Files {
		files[file.Name] = string(file.Data)
	}
	maps.Copy(files, changed)
	return tree(t, files)
}

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if content == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t *testing.T, o project.Options) *project.Project {
	t.Helper()
	p, err := project.Load(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func names(objects []unstructured.Unstructured) []string {
	var all []string
	for _, o := range objects {
		all = append(all, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	return all
}

// wantNotes fails the test unless each text is in some note.
func wantNotes(t *testing.T, p *project.Project, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !slices.ContainsFunc(p.Notes, func(note string) bool { return strings.Contains(note, want) }) {
			t.Errorf("no note has %q:\n%s", want, strings.Join(p.Notes, "\n"))
		}
	}
}

func TestAKubebuilderProjectIsRead(t *testing.T) {
	p := load(t, project.Options{Dir: boats(t, nil)})
	if p.Name != "boats" || p.Module != "example.com/boats" || p.Main != "cmd" {
		t.Errorf("name %q, module %q, main %q", p.Name, p.Module, p.Main)
	}
	if diff := cmp.Diff([]string{"config/crd/bases/sea.example.com_captains.yaml"}, p.CRDs); diff != "" {
		t.Errorf("CRDs, -want +got:\n%s", diff)
	}
	s := p.Subject
	if want := (subject.ServiceAccount{Namespace: "boats-system", Name: "boats-controller-manager"}); s.Identity != want {
		t.Errorf("identity %v, not %v", s.Identity, want)
	}
	if diff := cmp.Diff([]string{"Captain.sea.example.com", "Deployment.apps"}, s.Primary); diff != "" {
		t.Errorf("primary, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"Namespace /boats-system",
		"CustomResourceDefinition /captains.sea.example.com",
		"ServiceAccount boats-system/boats-controller-manager",
		"ClusterRole /boats-manager-role",
		"ClusterRole /boats-captain-viewer-role",
		"Role boats-system/boats-leader-election-role",
		"ClusterRoleBinding /boats-manager-rolebinding",
		"ClusterRoleBinding /boats-view",
		"RoleBinding boats-system/boats-leader-election-rolebinding",
		"ConfigMap boats-system/boats-fleet-HASH",
		"Service boats-system/boats-webhook-service",
	}, slices.Collect(func(yield func(string) bool) {
		for _, name := range names(s.Install) {
			if strings.HasPrefix(name, "ConfigMap ") {
				name = name[:strings.LastIndex(name, "-")] + "-HASH"
			}
			if !yield(name) {
				return
			}
		}
	})); diff != "" {
		t.Errorf("install, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"MutatingWebhookConfiguration /boats-mutating-webhook-configuration"}, names(s.Webhooks)); diff != "" {
		t.Errorf("webhooks, -want +got:\n%s", diff)
	}
	for _, o := range s.Install {
		if len(o.GetAnnotations()) > 0 {
			t.Errorf("%s got annotations of ours: %v", o.GetName(), o.GetAnnotations())
		}
	}
	versions, _, _ := unstructured.NestedSlice(s.Install[1].Object, "spec", "versions")
	if limit, _, err := unstructured.NestedInt64(versions[0].(map[string]any), "schema", "openAPIV3Schema", "maxProperties"); limit != 7 || err != nil {
		t.Errorf("a whole number became %v: %v", limit, err)
	}
	wantNotes(t, p, "ServiceMonitor boats-system/boats-metrics (monitoring.coreos.com/v1)", "Certificate", "ClusterRole view is bound",
		"config/samples/unlisted.yaml", "PASSWORD")
	for _, note := range p.Notes {
		if strings.Contains(note, "MAYBE") {
			t.Errorf("a note mentions an optional variable: %s", note)
		}
	}
	if len(p.Samples) != 1 || p.Samples[0].File != "config/samples/sea_v1_captain.yaml" || len(p.Samples[0].Objects) != 1 {
		t.Errorf("samples: %v", p.Samples)
	}
}

func TestRolesSayWhereTheyAreFromAndWhatIsIdle(t *testing.T) {
	p := load(t, project.Options{Dir: boats(t, nil)})
	got := map[string]subject.Role{}
	for _, role := range p.Subject.Roles {
		if role.Object.GetName() != role.Name {
			t.Errorf("role %s has the object %s", role.Name, role.Object.GetName())
		}
		role.Object = unstructured.Unstructured{}
		got[role.Name] = role
	}
	metrics, election := "Koboshi turns metrics off", "a leader is elected only when two instances run"
	want := map[string]subject.Role{
		"boats-manager-role": {
			Name: "boats-manager-role", File: "config/rbac/role.yaml",
			Idle: map[string]string{"tokenreviews.authentication.k8s.io": metrics},
		},
		"boats-leader-election-role": {
			Name: "boats-leader-election-role", Namespace: "boats-system", File: "config/rbac/role.yaml",
			Idle: map[string]string{"events": election, "leases.coordination.k8s.io": election},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheManagerIsBuiltAndStartedAsItsDeploymentSays(t *testing.T) {
	dir := boats(t, nil)
	p := load(t, project.Options{Dir: dir, Args: []string{"--fleet=last"}, Env: []string{"PASSWORD=given"}})
	program := filepath.Join(t.TempDir(), "manager")
	var progress bytes.Buffer
	if err := p.Build(t.Context(), program, &progress); err != nil {
		t.Fatal(err)
	}
	s := p.Subject
	if diff := cmp.Diff([]string{
		program, "--fleet", "north-boats-system-$(UNKNOWN)-$(FLEET)",
		"--metrics-bind-address=0", "--health-probe-bind-address=:0", "--kubeconfig=$(KUBECONFIG)", "--fleet=last",
	}, s.Command); diff != "" {
		t.Errorf("command, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"FLEET=north", "POD_NAMESPACE=boats-system", "TIER=back", "PLAIN=of north", "PASSWORD=given"}, s.Env); diff != "" {
		t.Errorf("environment, -want +got:\n%s", diff)
	}
	want := subject.Webhook{Port: 9443, CertDir: "$(CERTS)", Args: []string{"--webhook-cert-path=$(CERTS)", "--webhook-port=9443"}}
	if diff := cmp.Diff(want, s.Webhook); diff != "" {
		t.Errorf("webhook, -want +got:\n%s", diff)
	}
	if s.Election != nil {
		t.Errorf("the manager cannot elect a leader outside a Pod, but has the arguments %q", s.Election)
	}
	wantNotes(t, p, "its lease", "--config=etc/boats/config.yaml")
}

func TestAManagerThatKnowsItsNamespaceElectsALeader(t *testing.T) {
	for _, c := range []struct {
		name, source string
		want         []string
	}{
		{"by a flag", `package main
			import "flag"
			func main() { flag.Bool("leader-elect", true, "x"); flag.String("leader-election-namespace", "", "x"); flag.Parse() }`,
			[]string{"--leader-elect=true", "--leader-election-namespace=boats-system"}},
		{"by itself", `package main
			import "flag"
			// The manager sets LeaderElectionNamespace to a fixed value.
			func main() { flag.Bool("leader-elect", true, "x"); flag.Parse() }`,
			[]string{"--leader-elect=true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := load(t, project.Options{Dir: boats(t, map[string]string{"cmd/main.go": c.source})})
			if err := p.Build(t.Context(), filepath.Join(t.TempDir(), "manager"), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, p.Subject.Election); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !slices.Contains(p.Subject.Command, "--leader-elect=false") {
				t.Errorf("the manager elects a leader by default, and the command does not turn this off: %q", p.Subject.Command)
			}
			if p.Subject.Webhook.CertDir != "$(CERTS)" { // the Deployment has the flag
				t.Errorf("certificates in %q", p.Subject.Webhook.CertDir)
			}
		})
	}
}

func TestAManagerWithoutFlagsFindsItsCertificatesByTMPDIR(t *testing.T) {
	p := load(t, project.Options{Dir: boats(t, map[string]string{
		"cmd/main.go": "package main\nfunc main() {}", "config/default/webhook_patch.yaml": "[]",
	})})
	if err := p.Build(t.Context(), filepath.Join(t.TempDir(), "manager"), nil); err != nil {
		t.Fatal(err)
	}
	want := subject.Webhook{Port: 9443, CertDir: "$(CERTS)/k8s-webhook-server/serving-certs"}
	if diff := cmp.Diff(want, p.Subject.Webhook); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !slices.Contains(p.Subject.Env, "TMPDIR=$(CERTS)") {
		t.Errorf("the environment is %q", p.Subject.Env)
	}
	wantNotes(t, p, "prints no flags for --help")
}

func TestWithoutWebhooksTheyAreOff(t *testing.T) {
	p := load(t, project.Options{Dir: boats(t, map[string]string{"config/webhook/kustomization.yaml": "resources:\n- service.yaml\n"})})
	if err := p.Build(t.Context(), filepath.Join(t.TempDir(), "manager"), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(subject.Webhook{}, p.Subject.Webhook); diff != "" || !slices.Contains(p.Subject.Env, "ENABLE_WEBHOOKS=false") {
		t.Errorf("webhooks are on: %v, %q", p.Subject.Webhook, p.Subject.Env)
	}
}

func TestWhatDoesNotCompileIsShown(t *testing.T) {
	p := load(t, project.Options{Dir: boats(t, map[string]string{"cmd/main.go": "package main\nfunc main() { undefinedName() }\n"})})
	err := p.Build(t.Context(), filepath.Join(t.TempDir(), "manager"), nil)
	if err == nil || !strings.Contains(err.Error(), "undefined: undefinedName") || !strings.Contains(err.Error(), "go build") {
		t.Errorf("the error is: %v", err)
	}
}

func TestACommandIsStartedAsItIs(t *testing.T) {
	dir := boats(t, map[string]string{"go.mod": "", "cmd/main.go": "", "PROJECT": "", "run.sh": "#!/bin/sh\n"})
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := load(t, project.Options{Dir: dir, Command: []string{"./run.sh", "--port", "$(CERTS)"}})
	if err := p.Build(t.Context(), "", nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "run.sh"), "--port", "$(CERTS)"}, p.Subject.Command); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := project.Load(t.Context(), project.Options{Dir: dir, Command: []string{"./absent"}}); err == nil || !strings.Contains(err.Error(), "./absent") {
		t.Errorf("a program that is not there: %v", err)
	}
}

const hook = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: ships}
webhooks:
- name: ships.sea.example.com
  clientConfig: {service: {name: ships, namespace: sea, path: /mutate}}
`

func TestACommandSaysWhereItServesWebhooks(t *testing.T) {
	const conventional = "$(CERTS)/k8s-webhook-server/serving-certs"
	for _, c := range []struct {
		name string
		args []string
		env  []string
		port int
		want subject.Webhook
	}{
		{"as controller-runtime does", nil, nil, 0, subject.Webhook{Port: 9443, CertDir: conventional}},
		{"by its own flags", []string{"--webhook-port=7443", "--cert-dir", "$(CERTS)/tls"}, nil, 0, subject.Webhook{Port: 7443, CertDir: "$(CERTS)/tls"}},
		{"by words of its own", []string{"serve", "$(CERTS)/tls.crt"}, nil, 8443, subject.Webhook{Port: 8443, CertDir: "$(CERTS)"}},
		{"by its environment", nil, []string{"TLS=$(CERTS)"}, 0, subject.Webhook{Port: 9443, CertDir: "$(CERTS)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := project.FromManifests(t.Context(), project.Options{
				Dir:  tree(t, map[string]string{"crd.yaml": otherCRD, "hook.yaml": hook}),
				CRDs: "crd.yaml", Webhooks: "hook.yaml", WebhookPort: c.port, Command: append([]string{"sh"}, c.args...), Env: c.env,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, p.Subject.Webhook); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.args, p.Subject.Command[1:], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("its arguments were changed, -want +got:\n%s", diff)
			}
			if tmp := slices.Contains(p.Subject.Env, "TMPDIR=$(CERTS)"); c.want.CertDir == conventional && !tmp {
				t.Errorf("controller-runtime does not find the certificate: %q", p.Subject.Env)
			}
		})
	}
}

func TestACertificateIsPutIntoNoFolderOfAPerson(t *testing.T) {
	_, err := project.FromManifests(t.Context(), project.Options{
		Dir:  tree(t, map[string]string{"crd.yaml": otherCRD, "hook.yaml": hook}),
		CRDs: "crd.yaml", Webhooks: "hook.yaml", Command: []string{"sh", "--cert-dir=/etc/tls"},
	})
	if err == nil || !strings.Contains(err.Error(), "/etc/tls") || !strings.Contains(err.Error(), "'$(CERTS)'") {
		t.Errorf("the error is: %v", err)
	}
}

func TestWebhooksOfACommandWithoutAnyAreRefused(t *testing.T) {
	_, err := project.FromManifests(t.Context(), project.Options{
		Dir:  tree(t, map[string]string{"crd.yaml": otherCRD}),
		CRDs: "crd.yaml", Webhooks: "crd.yaml", Command: []string{"sh"},
	})
	if err == nil || !strings.Contains(err.Error(), "--webhooks crd.yaml") {
		t.Errorf("the error is: %v", err)
	}
}
