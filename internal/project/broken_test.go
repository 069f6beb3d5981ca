package project_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project"
)

const usesRuntime = "package main\nimport _ \"sigs.k8s.io/controller-runtime\"\nfunc main() {}\n"

const otherCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  names: {kind: Ship, plural: ships}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true}]
`

func TestWhatIsBrokenIsNamedWithTheNextAction(t *testing.T) {
	crd, role := "config/crd/bases/sea.example.com_captains.yaml", "config/rbac/role.yaml"
	for _, c := range []struct {
		name    string
		changed map[string]string
		options project.Options
		want    []string
	}{
		{"no Go", map[string]string{"go.mod": ""}, project.Options{}, []string{"no go.mod", "after --"}},
		{"PROJECT", map[string]string{"PROJECT": "{"}, project.Options{}, []string{"PROJECT: "}},
		{"no main", map[string]string{"cmd/main.go": "package cmd\n"}, project.Options{}, []string{"no main package", "--main"}},
		{"two mains", map[string]string{"cmd/main.go": "", "cmd/sail/main.go": usesRuntime, "cmd/row/main.go": usesRuntime, "cmd/tool/main.go": "package main"},
			project.Options{}, []string{"cmd/row, cmd/sail, cmd/tool", "--main"}},
		{"two usual names", map[string]string{"cmd/main.go": "", "cmd/operator/main.go": usesRuntime, "cmd/controller/main.go": usesRuntime},
			project.Options{}, []string{"cmd/controller, cmd/operator", "--main"}},
		{"main elsewhere", nil, project.Options{Main: "config"}, []string{"--main config"}},
		{"definition is no YAML", map[string]string{crd: "apiVersion: v1\n---\na: [\n"}, project.Options{}, []string{crd, "document 1"}},
		{"definition with a mistyped field", map[string]string{crd: strings.Replace(otherCRD, "[{name: v1, served: true, storage: true}]", "{}", 1)},
			project.Options{}, []string{crd, "CustomResourceDefinition ships.sea.example.com", "versions"}},
		{"definition of an old version", map[string]string{crd: strings.Replace(otherCRD, "k8s.io/v1", "k8s.io/v1alpha1", 1)},
			project.Options{}, []string{crd, "v1alpha1"}},
		{"definition of v1beta1 with a mistyped field", map[string]string{crd: "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec: {names: x}\n"},
			project.Options{}, []string{crd, "converting it to v1", "names"}},
		{"definition is a template", map[string]string{crd: "apiVersion: v1\nkind: {{{KIND}}}\n"}, project.Options{}, []string{crd, "document 1", "template", "--helm", "--manifests"}},
		{"a field twice", map[string]string{role: "apiVersion: v1\nkind: Service\nkind: Service\nmetadata: {name: x}\n"},
			project.Options{}, []string{role, "document 1", "kind"}},
		{"no name", map[string]string{role: "apiVersion: v1\nkind: Service\nmetadata: {}\n"}, project.Options{}, []string{role, "document 1", "Service", "metadata.name"}},
		{"remote", map[string]string{"config/default/kustomization.yaml": "resources:\n- https://example.com/all.yaml\n"},
			project.Options{}, []string{"config/default/kustomization.yaml", "https://example.com/all.yaml", "--with-crds", "--given"}},
		{"remote repository", map[string]string{"config/rbac/kustomization.yaml": "resources:\n- github.com/example/rbac?ref=v1\n"},
			project.Options{}, []string{"config/rbac/kustomization.yaml", "github.com/example/rbac", "koboshi downloads nothing"}},
		{"remote patch", map[string]string{"config/manager/kustomization.yaml": "resources: [manager.yaml]\npatches:\n- path: http://example.com/patch.yaml\n"},
			project.Options{}, []string{"config/manager/kustomization.yaml", "http://example.com/patch.yaml"}},
		{"sample is no YAML", map[string]string{"config/samples/sea_v1_captain.yaml": "a: b: c"}, project.Options{}, []string{"config/samples/sea_v1_captain.yaml", "document 1"}},
		{"sample is not there", map[string]string{"config/samples/sea_v1_captain.yaml": ""}, project.Options{}, []string{"config/samples/kustomization.yaml", "sea_v1_captain.yaml"}},
		{"samples elsewhere", nil, project.Options{Samples: "nowhere"}, []string{"nowhere"}},
		{"samples without any", nil, project.Options{Samples: "cmd"}, []string{"--samples cmd"}},
		{"definitions elsewhere", nil, project.Options{CRDs: "nowhere"}, []string{"--crds nowhere"}},
		{"definitions without any", nil, project.Options{CRDs: "config/rbac"}, []string{"--crds config/rbac"}},
		{"RBAC without any", nil, project.Options{RBAC: "config/samples"}, []string{"--rbac config/samples"}},
		{"webhooks without any", nil, project.Options{Webhooks: "config/samples"}, []string{"--webhooks config/samples"}},
		{"folder without kustomization", nil, project.Options{Kustomization: "cmd"}, []string{"--kustomization cmd"}},
		{"kustomization that is broken", map[string]string{"config/default/monitor.yaml": ""}, project.Options{Kustomization: "config/default"},
			[]string{"config/default", "monitor.yaml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Dir = boats(t, c.changed)
			_, err := project.Load(t.Context(), c.options)
			if err == nil {
				t.Fatal("there is no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
			if !strings.Contains(err.Error(), "; ") {
				t.Errorf("there is no next action: %v", err)
			}
		})
	}
}

func TestWhatIsNotThereIsNoted(t *testing.T) {
	for _, c := range []struct {
		name    string
		changed map[string]string
		want    []string
	}{
		{"no samples", map[string]string{"config/samples/kustomization.yaml": "", "config/samples/sea_v1_captain.yaml": "", "config/samples/unlisted.yaml": ""},
			[]string{"--samples"}},
		{"no definitions", map[string]string{"config/crd/kustomization.yaml": "resources: []\n"}, []string{"--crds"}},
		{"no bindings", map[string]string{"config/rbac/kustomization.yaml": "resources: [service_account.yaml, role.yaml]\n"}, []string{"no role", "--rbac"}},
		{"no Deployment", map[string]string{"config/manager/manager.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: system}\n", "config/default/kustomization.yaml": "resources: [../crd, ../rbac, ../manager]"},
			[]string{"no Deployment", "--args"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantNotes(t, load(t, project.Options{Dir: boats(t, c.changed)}), c.want...)
		})
	}
}

func TestAnInstallationThatCannotBeBuiltIsAnError(t *testing.T) {
	for name, changed := range map[string]map[string]string{
		"config/default": {"config/default/webhook_patch.yaml": "- op: remove\n  path: /no/such/field\n"},
		"config/webhook": {"config/default/kustomization.yaml": "", "config/webhook/kustomization.yaml": "resources: [manifests.yaml]\npatches: [{path: absent.yaml}]\n"},
	} {
		_, err := project.Load(t.Context(), project.Options{Dir: boats(t, changed)})
		if err == nil {
			t.Errorf("%s: half of the installation is taken for the whole", name)
			continue
		}
		for _, want := range []string{name, "--kustomization", "--manifests"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
	}
}

func TestWithoutConfigDefaultTheFoldersAreReadApart(t *testing.T) {
	p := load(t, project.Options{Dir: boats(t, map[string]string{
		"config/default/kustomization.yaml":    "",
		"config/rbac/kustomization.yaml":       "",
		"config/crd/bases/sea_ships.yaml":      otherCRD,
		"config/crd/patches/cainjection.yaml":  "no: object\n",
		"config/crd/kustomizeconfig/more.yaml": "no: object\n",
		"config/crd/kustomization.yaml":        "",
	})})
	wantNotes(t, p, "no config/default")
	if want := (subject.ServiceAccount{Namespace: "system", Name: "controller-manager"}); p.Subject.Identity != want {
		t.Errorf("identity %v", p.Subject.Identity)
	}
	for _, want := range []string{"CustomResourceDefinition /ships.sea.example.com", "CustomResourceDefinition /captains.sea.example.com", "ClusterRole /manager-role", "Namespace /system"} {
		if !slices.Contains(names(p.Subject.Install), want) {
			t.Errorf("%s is not in %q", want, names(p.Subject.Install))
		}
	}
	if len(p.Subject.Webhooks) != 1 || len(p.Subject.Roles) != 2 {
		t.Errorf("webhooks %q, %d roles", names(p.Subject.Webhooks), len(p.Subject.Roles))
	}
}

func TestFlagsTakeThePlaceOfWhatConfigHas(t *testing.T) {
	rbac := strings.Join([]string{
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: boats-controller-manager, namespace: boats-system}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: all}\nroleRef: {kind: ClusterRole, name: all}\n" +
			"subjects: [{kind: Group, name: 'system:serviceaccounts:boats-system'}]\n",
	}, "---\n")
	dir := boats(t, map[string]string{"other/crds/ships.yaml": otherCRD, "other/rbac.yaml": rbac,
		"other/samples/a.yaml": "apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: a}\n"})
	p := load(t, project.Options{Dir: dir, CRDs: "other/crds", RBAC: filepath.Join(dir, "other/rbac.yaml"), Samples: "other/samples"})
	if diff := cmp.Diff([]string{"other/crds/ships.yaml"}, p.CRDs); diff != "" {
		t.Errorf("CRDs, -want +got:\n%s", diff)
	}
	if len(p.Subject.Roles) != 1 || p.Subject.Roles[0].File != "other/rbac.yaml" {
		t.Errorf("roles: %v", p.Subject.Roles)
	}
	for _, name := range names(p.Subject.Install) {
		if strings.Contains(name, "captain") || strings.Contains(name, "manager-role") {
			t.Errorf("%s is still there", name)
		}
	}
	if len(p.Samples) != 1 || p.Samples[0].File != "other/samples/a.yaml" {
		t.Errorf("samples: %v", p.Samples)
	}
}

func TestManifestsAloneMakeASubject(t *testing.T) {
	dir := tree(t, map[string]string{
		"crds/nested/ships.yaml": otherCRD,
		"rbac/all.yaml": `apiVersion: v1
kind: List
items:
- apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  metadata: {name: crew, namespace: harbour}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: crew, namespace: harbour}
  roleRef: {kind: Role, name: crew}
  subjects: [{kind: ServiceAccount, name: pilot}]
`,
	})
	command := []string{"sh"}
	p, err := project.FromManifests(t.Context(), project.Options{Dir: dir, CRDs: "crds", RBAC: "rbac", Command: command})
	if err != nil {
		t.Fatal(err)
	}
	if want := (subject.ServiceAccount{Namespace: "harbour", Name: "pilot"}); p.Subject.Identity != want {
		t.Errorf("identity %v", p.Subject.Identity)
	}
	if diff := cmp.Diff([]string{
		"Namespace /harbour", "CustomResourceDefinition /ships.sea.example.com", "ServiceAccount harbour/pilot", "Role harbour/crew", "RoleBinding harbour/crew",
	}, names(p.Subject.Install)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(p.Subject.Roles) != 1 || p.Subject.Roles[0].Namespace != "harbour" {
		t.Errorf("roles: %v", p.Subject.Roles)
	}
	for _, path := range []string{filepath.Join(dir, "absent"), t.TempDir()} {
		if _, err := project.FromManifests(t.Context(), project.Options{CRDs: path, Command: command}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("of %s: %v", path, err)
		}
	}
}
