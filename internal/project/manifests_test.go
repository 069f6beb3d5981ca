package project_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// installation returns the manifests in testdata with some texts replaced.
func installation(t *testing.T, replace ...string) string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "installation.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(replace...).Replace(string(archive.Files[0].Data))
}

// pilot is a controller that prints its flags.
const pilot = `#!/bin/sh
cat <<END
Flags:
  --leader-elect             elect a leader
  --metrics-bind-address string   address
  --depth string             a file
  --tide string              a file
  --verbosity int            level
END
`

// fromManifests prepares a check of the pilot with the installation.
func fromManifests(t *testing.T, manifests string, o project.Options, args ...string) (*project.Project, *heard, error) {
	t.Helper()
	o.Dir = tree(t, map[string]string{"pilot": pilot})
	if err := os.Chmod(filepath.Join(o.Dir, "pilot"), 0o755); err != nil {
		t.Fatal(err)
	}
	if len(o.Manifests) == 0 {
		o.Manifests, o.Stdin = []string{"-"}, strings.NewReader(manifests)
	}
	o.Command = append([]string{filepath.Join(o.Dir, "pilot")}, args...)
	var told heard
	p, err := project.Prepare(t.Context(), o, "", nil, &told)
	return p, &told, err
}

func TestAnInstallationIsReadFromStandardInput(t *testing.T) {
	p, told, err := fromManifests(t, installation(t), project.Options{Env: []string{"FLEET_NAME=north"}}, "--verbosity=7")
	if err != nil {
		t.Fatal(err)
	}
	s := p.Subject
	if want := (subject.ServiceAccount{Namespace: "harbour", Name: "pilot"}); s.Identity != want || len(s.Roles) != 1 {
		t.Errorf("identity %v, %d roles", s.Identity, len(s.Roles))
	}
	if diff := cmp.Diff([]string{
		p.Dir + "/pilot", "run", "--fleet=north", "--feature-gates=Sails=true,Oars=false,Motor=",
		"--depth=$(KOBOSHI_ROOT)/etc/chart/depth.yaml", "--tide", "$(KOBOSHI_ROOT)/etc/chart/sub/tide",
		"--password-file=$(KOBOSHI_ROOT)/keys/password", "--tls-file=$(CERTS)/tls.crt", "--absent=$(KOBOSHI_ROOT)/scratch/absent",
		"--metrics-bind-address=0", "--verbosity=7",
	}, s.Command); diff != "" {
		t.Errorf("command, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"Namespace /harbour", "CustomResourceDefinition /ships.sea.example.com", "ServiceAccount harbour/pilot", "ClusterRole /pilot",
		"ClusterRoleBinding /pilot", "ConfigMap harbour/chart", "Secret harbour/keys", "Service harbour/pilot", "Service harbour/gate",
		"ValidatingAdmissionPolicy /depth",
	}, names(s.Install)); diff != "" {
		t.Errorf("install, -want +got:\n%s", diff)
	}
	for _, want := range []string{
		"ServiceMonitor harbour/pilot", "Job harbour/migrate", "left out Deployment harbour/gate",
		"left out a webhook of ValidatingWebhookConfiguration harbour, because Deployment harbour/gate serves it",
		"objects of CustomResourceDefinition ships.sea.example.com are not converted", "the volume host",
	} {
		if !slices.ContainsFunc(*told, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("%q is not told:\n%s", want, strings.Join(*told, "\n"))
		}
	}
	if webhooks, _ := s.Webhooks[0].Object["webhooks"].([]any); len(s.Webhooks) != 1 || len(webhooks) != 1 {
		t.Errorf("webhooks: %v", s.Webhooks)
	}
	if want := (subject.Webhook{Port: 9443, CertDir: "$(CERTS)", Mounts: []string{"/serving"}}); !cmp.Equal(want, s.Webhook) {
		t.Errorf("webhook %v", s.Webhook)
	}
}

func TestTheEnvironmentIsThatOfAKubelet(t *testing.T) {
	p, _, err := fromManifests(t, installation(t), project.Options{Env: []string{"FLEET_NAME=north"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"depth.yaml=depth: 7", "sound.sh=echo ${DEPTH:-none}", "tide=tide", "KEY_password=seaman", "KEY_user=ahab",
		"FLEET=north", "NAMES=north $(UNKNOWN) $(FLEET)", "PASSWORD=seaman", "USER_NAME=ahab", "POD=pilot-0",
		"UID=$(KOBOSHI_POD_UID)", "ACCOUNT=pilot", "APP=pilot", "NO_LABEL=", "WATCH_NAMESPACE=",
		"IP=$(KOBOSHI_ADDRESS)", "CPU=2", "CPU_MILLI=250", "MEMORY=100", "CHART_FILE=$(KOBOSHI_ROOT)/etc/chart/depth.yaml", "FLEET_NAME=north",
	}, p.Subject.Env); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheControllerHasAWorkloadAndAPodToLookUp(t *testing.T) {
	p, _, err := fromManifests(t, installation(t), project.Options{Env: []string{"FLEET_NAME=north"}})
	if err != nil {
		t.Fatal(err)
	}
	var self []string
	for _, o := range p.Subject.Self {
		self = append(self, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	if diff := cmp.Diff([]string{"Namespace /harbour", "Deployment harbour/pilot", "Pod harbour/pilot-0"}, self); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	replicas, _, _ := unstructured.NestedInt64(p.Subject.Self[1].Object, "spec", "replicas")
	phase, _, _ := unstructured.NestedString(p.Subject.Self[2].Object, "status", "phase")
	if replicas != 0 || phase != "Running" || p.Subject.Self[2].GetLabels()["app"] != "pilot" {
		t.Errorf("the Deployment has %d replicas, and the Pod is %s, with the labels %v", replicas, phase, p.Subject.Self[2].GetLabels())
	}
}

func TestVolumesBecomeFiles(t *testing.T) {
	p, _, err := fromManifests(t, installation(t), project.Options{Env: []string{"FLEET_NAME=north"}})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := subject.WriteFiles(root, p.Subject.Files); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, file := range []string{"etc/chart/depth.yaml", "etc/chart/sub/tide", "keys/password", "info/annotations", "info/user"} {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Error(err)
		}
		got[file] = string(data)
	}
	if diff := cmp.Diff(map[string]string{
		"etc/chart/depth.yaml": "depth: 7", "etc/chart/sub/tide": "tide", "keys/password": "seaman", "info/annotations": `tide="high"`, "info/user": "ahab",
	}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if entries, err := os.ReadDir(filepath.Join(root, "scratch")); err != nil || len(entries) > 0 {
		t.Errorf("an empty volume: %v %v", entries, err)
	}
	if info, err := os.Stat(filepath.Join(root, "keys/password")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a Secret can be read by others: %v %v", info.Mode(), err)
	}
}

func TestTheUsersArgumentsReplaceThoseOfTheDeployment(t *testing.T) {
	for _, c := range []struct {
		name    string
		options project.Options
		args    []string
		want    []string
	}{
		{"words", project.Options{}, []string{"walk"}, []string{"walk", "--fleet=north"}},
		{"a flag", project.Options{}, []string{"--fleet=south", "--depth", "here"}, []string{"run", "--feature-gates=Sails=true,Oars=false,Motor="}},
		{"nothing else", project.Options{ArgsOnly: true, Args: []string{"--x"}}, []string{"walk", "--fleet=south"}, []string{"walk", "--fleet=south", "--x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Env = []string{"FLEET_NAME=north"}
			p, _, err := fromManifests(t, installation(t), c.options, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			got := p.Subject.Command[1:]
			if c.options.ArgsOnly {
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				return
			}
			if diff := cmp.Diff(c.want, got[:len(c.want)]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, flag := range c.args {
				if n := strings.Count(strings.Join(got, " "), strings.SplitN(flag, "=", 2)[0]); n != 1 {
					t.Errorf("%s is there %d times: %q", flag, n, got)
				}
			}
		})
	}
}

func TestTheControllersWorkloadIsPicked(t *testing.T) {
	unlike := []string{"- --leader-elect\n", "", "image: registry.example.com/pilot:v1", "image: x", "image: registry.example.com/gate:v1", "image: y"}
	unbound := append([]string{"subjects: [{kind: ServiceAccount, name: pilot", "subjects: [{kind: ServiceAccount, name: other"}, unlike...)
	for _, c := range []struct {
		name       string
		replace    []string
		deployment string
		want       string // the name of the workload, or parts of the error
	}{
		{"by leader election", nil, "", "pilot"},
		{"by its roles", unlike, "", "pilot"},
		{"by its label", append([]string{"labels: {app: gate}", "labels: {app: gate, control-plane: controller-manager}"}, unlike...), "", "gate"},
		{"by its image", append([]string{"image: registry.example.com/pilot:v1", "image: sea-operator"}, unbound...), "", "pilot"},
		{"by the name that begins the others", append([]string{"name: gate", "name: pilot-gate"}, unbound...), "", "pilot"},
		{"by nothing", unbound, "", "several workloads could run the controller: Deployment harbour/gate, Deployment harbour/pilot; choose one with --deployment"},
		{"by name", nil, "gate", "gate"},
		{"by namespace and name", unbound, "harbour/pilot", "pilot"},
		{"in another namespace", nil, "sea/pilot", "--deployment sea/pilot names no Deployment, StatefulSet or DaemonSet of the installation, which has: Deployment harbour/gate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, told, err := fromManifests(t, installation(t, c.replace...), project.Options{Deployment: c.deployment, Env: []string{"FLEET_NAME=x"}})
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("the error is: %v", err)
				}
				return
			}
			if strings.Contains(c.want, " ") {
				t.Fatalf("there is no error; the identity is %v", p.Subject.Identity)
			}
			if slices.ContainsFunc(*told, func(line string) bool { return strings.Contains(line, "left out Deployment harbour/"+c.want+",") }) ||
				!slices.ContainsFunc(*told, func(line string) bool { return strings.Contains(line, "left out Deployment harbour/") }) {
				t.Errorf("not picked; the identity is %v:\n%s", p.Subject.Identity, strings.Join(*told, "\n"))
			}
		})
	}
}

func TestWhatAnInstallationLacksIsNamed(t *testing.T) {
	env := []string{"FLEET_NAME=x"}
	noKeys := []string{"kind: Secret\nmetadata: {name: keys,", "kind: Secret\nmetadata: {name: others,"}
	for _, c := range []struct {
		name    string
		replace []string
		options project.Options
		want    []string
	}{
		{"a variable", nil, project.Options{}, []string{"Deployment harbour/pilot", "FLEET_NAME", "--env FLEET_NAME=VALUE"}},
		{"a variable of a Secret", []string{"c2VhbWFu", `"${PASSWORD_B64}"`}, project.Options{Env: env}, []string{"Secret harbour/keys", "--env PASSWORD_B64=VALUE"}},
		{"a mounted Secret", noKeys, project.Options{Env: env}, []string{"/keys/password", "Secret keys", "--given FILE", "--stub-secret harbour/keys"}},
		{"a mounted ConfigMap", []string{"kind: ConfigMap\nmetadata: {name: chart,", "kind: ConfigMap\nmetadata: {name: x,"}, project.Options{Env: env},
			[]string{"/etc/chart", "ConfigMap chart", "--given FILE", "--stub-configmap harbour/chart"}},
		{"a key", []string{"items: [{key: user,", "items: [{key: captain,"}, project.Options{Env: env}, []string{"Secret keys has no key captain"}},
		{"a value", nil, project.Options{Env: []string{"FLEET_NAME"}}, []string{"--env FLEET_NAME=VALUE"}},
		{"the keys of a stub", nil, project.Options{Env: env, StubSecrets: []string{"harbour/absent2"}}, []string{"--stub-secret harbour/absent2", "NAMESPACE/NAME=KEY,KEY"}},
		{"standard input twice", nil, project.Options{Manifests: []string{"-", "-"}, Stdin: strings.NewReader(installation(t)), Env: env}, []string{"--manifests -", "name a file"}},
		{"any object", nil, project.Options{Manifests: []string{"-"}, Stdin: strings.NewReader("# nothing\n"), Env: env}, []string{"--manifests -: standard input contains no object"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := fromManifests(t, installation(t, c.replace...), c.options)
			if err == nil {
				t.Fatal("there is no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

func TestASecretCanBeMadeUp(t *testing.T) {
	replace := []string{"kind: Secret\nmetadata: {name: keys,", "kind: Secret\nmetadata: {name: others,"}
	p, _, err := fromManifests(t, installation(t, replace...), project.Options{
		Env: []string{"FLEET_NAME=x"}, StubSecrets: []string{"harbour/keys", "sea/cert=tls.crt,tls.key,ca.crt"},
	})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string][]string{}
	for _, o := range p.Subject.Install {
		if o.GetKind() == "Secret" {
			data, _ := o.Object["stringData"].(map[string]any)
			keys[o.GetNamespace()+"/"+o.GetName()] = slices.Sorted(maps.Keys(data))
			if cert, ok := data["tls.crt"].(string); ok && !strings.HasPrefix(cert, "-----BEGIN CERTIFICATE") {
				t.Errorf("the certificate is %q", cert)
			}
		}
	}
	if diff := cmp.Diff(map[string][]string{
		"harbour/keys": {"password", "user"}, "harbour/others": {"user"}, "sea/cert": {"ca.crt", "tls.crt", "tls.key"},
	}, keys); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOtherProjectsDefinitionsAreAdded(t *testing.T) {
	dir := boats(t, map[string]string{"more/ships.yaml": otherCRD, "more/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: password, namespace: boats-system}\nstringData: {password: x}\n"})
	p := load(t, project.Options{Dir: dir, WithCRDs: []string{"more"}, Given: []string{"more/secret.yaml"}})
	for _, want := range []string{"CustomResourceDefinition /captains.sea.example.com", "CustomResourceDefinition /ships.sea.example.com", "Secret boats-system/password"} {
		if !slices.Contains(names(p.Subject.Install), want) {
			t.Errorf("%s is not in %q", want, names(p.Subject.Install))
		}
	}
	if slices.Contains(p.Subject.Primary, "Ship.sea.example.com") || slices.Contains(p.CRDs, "more/ships.yaml") {
		t.Errorf("another project's kind is taken for the controller's: %q, %q", p.Subject.Primary, p.CRDs)
	}
	wantNotes(t, p, "left out Secret boats-system/password of more/secret.yaml, because --with-crds")
}
