package project_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/strvals"

	"github.com/koboshi-dev/koboshi/internal/kubeversion"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// harbourChart returns a chart with a subchart, which is off by default, and a test hook.
func harbourChart(changed map[string]string) map[string]string {
	files := map[string]string{
		"chart/Chart.yaml":             "apiVersion: v2\nname: harbour\nversion: 1.0.0\ndependencies:\n- {name: light, version: 1.0.0, condition: light.enabled}\n",
		"chart/values.yaml":            "account: pilot\nflags: []\nlight: {enabled: false}\n",
		"chart/crds/ships.yaml":        otherCRD,
		"chart/templates/_helpers.tpl": `{{ define "name" }}{{ .Release.Name }}-{{ .Values.account }}{{ end }}`,
		"chart/templates/NOTES.txt":    "Welcome to {{ .Chart.Name }}\n",
		"chart/templates/account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {{ include \"name\" . }}\n  namespace: {{ .Release.Namespace }}\n",
		"chart/templates/deployment.yaml": `{{- if .Capabilities.APIVersions.Has "apps/v1" }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: harbour
spec:
  template:
    metadata:
      labels: {app: harbour}
      labels: {app: harbour}
    spec:
      serviceAccountName: {{ include "name" . }}
      containers:
      - name: harbour
        image: harbour
        args: {{ toJson .Values.flags }}
{{- end }}
`,
		"chart/templates/test.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: test, annotations: {helm.sh/hook: test}}\n",
		"chart/charts/light/Chart.yaml":         "apiVersion: v2\nname: light\nversion: 1.0.0\n",
		"chart/charts/light/templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: light}\n",
		"values.yaml":                           "flags: [--depth=1]\nlight: {enabled: true}\n",
	}
	maps.Copy(files, changed)
	return files
}

func TestAChartIsRenderedAsHelmDoes(t *testing.T) {
	o := project.Options{
		Dir: tree(t, harbourChart(nil)), Command: []string{"true"},
		Helm: "chart", Values: []string{"values.yaml"}, Set: []string{"account=captain", "flags[1]=--tide=low"},
	}
	p, err := project.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"CustomResourceDefinition /ships.sea.example.com", "ServiceAccount default/harbour-captain", "ConfigMap /light",
	}, names(p.Subject.Install)); diff != "" {
		t.Errorf("install, -want +got:\n%s", diff)
	}
	if p.Subject.Identity.Name != "harbour-captain" {
		t.Errorf("identity %v", p.Subject.Identity)
	}
	if err := p.Build(t.Context(), "", nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"--depth=1", "--tide=low"}, p.Subject.Command[1:]); diff != "" {
		t.Errorf("arguments, -want +got:\n%s", diff)
	}
	if !slices.Equal(p.CRDs, []string{filepath.Join("chart", "crds", "ships.yaml")}) {
		t.Errorf("CRDs in %q", p.CRDs)
	}
}

func TestAChartIsRenderedForTheKubernetesOfThePlane(t *testing.T) {
	minors := kubeversion.Minors()
	files := harbourChart(map[string]string{"chart/templates/account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n" +
		"  name: {{ include \"name\" . }}\n  annotations: {version: {{ .Capabilities.KubeVersion.Version }}, minor: {{ .Capabilities.KubeVersion.Minor | quote }}}\n"})
	for minor, want := range map[string]string{"": "v" + kubeversion.Version, minors[0]: "v" + minors[0] + ".0"} {
		p, err := project.Open(t.Context(), project.Options{Dir: tree(t, files), Helm: "chart", Kubernetes: minor, Command: []string{"true"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range p.Subject.Install {
			if got := o.GetAnnotations(); o.GetKind() == "ServiceAccount" && (got["version"] != want || !strings.HasPrefix(want, "v1."+got["minor"]+".")) {
				t.Errorf("with --kubernetes %q, the chart is rendered for %v", minor, got)
			}
		}
	}
}

func TestAnErrorAboutASettingDoesNotShowItsValue(t *testing.T) {
	for entry, want := range map[string]string{
		"password=hunter2,hunter3":  "--set password: a part has no value",
		"hunter2,hunter3":           "--set: a part has no value",
		"list[hunter]=hunter2":      "--set list[hunter] is not in Helm's syntax",
		"a={hunter2,hunter3":        "--set a is not in Helm's syntax",
		"password=a,key=b,,hunter2": "--set password,key: a part has no value",
	} {
		_, err := project.Open(t.Context(), project.Options{Dir: tree(t, harbourChart(nil)), Helm: "chart", Set: []string{entry}, Command: []string{"true"}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "hunter3") {
			t.Errorf("%s: %v", entry, err)
		}
	}
}

func TestSettingsAreNamedWithoutTheirValues(t *testing.T) {
	for entry, want := range map[string][]string{
		"a=1":                         {"a"},
		"image.tag=v1,a[0].b=x=y":     {"image.tag", "a[0].b"},
		"list={a,b},c=1":              {"list", "c"},
		`key=a\,b,c=1`:                {"key", "c"},
		`labels.app\.io/name=x`:       {`labels.app\.io/name`},
		"empty=":                      {"empty"},
		"name.alone":                  {"name.alone"},
		"password=hunter2,hunter3":    {"password"},
		"a=={x,b=y":                   {"a", "b"},
		"a=1,":                        {"a"},
		"a={x},b={y,z},c={\\},d},e=f": {"a", "b", "c", "e"},
	} {
		if got := project.SettingNames(entry); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
}

func FuzzNoValueOfASettingIsTakenForAName(f *testing.F) {
	for _, seed := range []string{"", "x", "a,b=c", "{a,b}", "a=b", `\`, "}{", "a.b[0]"} {
		f.Add(seed)
	}
	escape := strings.NewReplacer(`\`, `\\`, ",", `\,`, "{", `\{`, "}", `\}`)
	f.Fuzz(func(t *testing.T, value string) {
		if strings.Contains(value, "\x00") || !utf8.ValidString(value) {
			return // not an argument of a program
		}
		entry := "a.b=" + escape.Replace(value) + ",c=1"
		if got := project.SettingNames(entry); !slices.Equal(got, []string{"a.b", "c"}) {
			t.Errorf("%q: the names are %q", entry, got)
		}
		read, err := strvals.ParseString(entry)
		if diff := cmp.Diff(map[string]any{"a": map[string]any{"b": value}, "c": "1"}, read); err != nil || diff != "" {
			t.Errorf("%q: Helm reads %v, %v", entry, read, err)
		}
	})
}

func TestAChartThatCannotBeRenderedIsAnError(t *testing.T) {
	for _, c := range []struct {
		name    string
		changed map[string]string
		options project.Options
		want    []string
	}{
		{"a value that it requires", map[string]string{"chart/templates/x.yaml": "{{ required \"account.key is required\" .Values.key }}"}, project.Options{},
			[]string{"--helm chart", "account.key is required", "-f", "--set"}},
		{"a chart on which it depends", map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: harbour\nversion: 1.0.0\ndependencies:\n- {name: dark, version: 1.0.0, repository: https://example.com}\n"},
			project.Options{}, []string{"dark", "helm dependency build"}},
		{"a template", map[string]string{"chart/templates/x.yaml": "a: [\n"}, project.Options{}, []string{"chart/templates/x.yaml", "document 1"}},
		{"a setting", nil, project.Options{Set: []string{"account"}}, []string{"--set account", "--set account=VALUE"}},
		{"a file of values", nil, project.Options{Values: []string{"absent.yaml"}}, []string{"-f", "absent.yaml"}},
		{"the chart", map[string]string{"chart/Chart.yaml": ""}, project.Options{}, []string{"--helm chart", "Chart.yaml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Dir, c.options.Helm, c.options.Command = tree(t, harbourChart(c.changed)), "chart", []string{"true"}
			_, err := project.Open(t.Context(), c.options)
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

func TestTheChartsOfAProjectWithoutManifestsAreNamed(t *testing.T) {
	files := harbourChart(map[string]string{"go.mod": "module example.com/harbour\n", "main.go": usesRuntime, "vendor/x/Chart.yaml": "name: x\n"})
	p := load(t, project.Options{Dir: tree(t, files)})
	wantNotes(t, p, "there are no manifests in config/ or deploy/ (use --manifests to name them, or --helm for one of the charts chart)")
}

func TestAChartWithoutDefinitionsSaysHowChartsAddThem(t *testing.T) {
	files := harbourChart(map[string]string{"chart/crds/ships.yaml": ""})
	p, err := project.Open(t.Context(), project.Options{Dir: tree(t, files), Helm: "chart", Command: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	wantNotes(t, p, "often crds.enabled")
}

func TestAChartThatAConditionTurnsOffNeedNotBeThere(t *testing.T) {
	const meta = "apiVersion: v2\nname: harbour\nversion: 1.0.0\ndependencies:\n- {name: dark, version: 1.0.0, repository: https://example.com, condition: 'absent.enabled, dark.enabled'}\n"
	files := harbourChart(map[string]string{"chart/Chart.yaml": meta, "chart/values.yaml": "account: pilot\nflags: []\ndark: {enabled: false}\n"})
	o := project.Options{Dir: tree(t, files), Helm: "chart", Command: []string{"true"}}
	if _, err := project.Open(t.Context(), o); err != nil {
		t.Error(err)
	}
	o.Set = []string{"dark.enabled=true"}
	if _, err := project.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "dark") {
		t.Errorf("with the chart turned on, the error is: %v", err)
	}
}

func TestTheProgramAndTheWorkloadWithTheUsualNameArePicked(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s}\nspec:\n  template:\n    spec:\n      containers:\n      - {name: x, image: example.com/ship-manager-%s@sha256:0}\n---\n"
	p := load(t, project.Options{Manifests: []string{"install.yaml"}, Dir: tree(t, map[string]string{
		"go.mod": "module example.com/ship\n", "cmd/webhook/main.go": usesRuntime, "cmd/injector/main.go": usesRuntime, "cmd/controller/main.go": "package main\nfunc main() {}\n",
		"install.yaml": fmt.Sprintf(deployment, "a", "injector") + fmt.Sprintf(deployment, "b", "controller"),
	})})
	if p.Main != "cmd/controller" {
		t.Errorf("the main package is %s", p.Main)
	}
	wantNotes(t, p, "cmd/controller is built, because its name is a usual one for a manager (use --main to choose another of the programs cmd/controller, cmd/injector, cmd/webhook)",
		"left out Deployment a, because only the controller is run (--deployment chooses another workload)")
}

func TestDefinitionsThatAChartLacksAreNamed(t *testing.T) {
	files := harbourChart(map[string]string{"chart/crds/ships.yaml": "", "config/crds/bases/ships.yaml": hintCRD})
	p, err := project.Open(t.Context(), project.Options{Dir: tree(t, files), Helm: "chart", Command: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	wantNotes(t, p, filepath.FromSlash("use --crds to name their file or folder, such as config/crds/bases, or set the value"))
}

func TestTheChartsOfAProjectWithoutConfigDefaultAreNamed(t *testing.T) {
	files := harbourChart(map[string]string{"go.mod": "module example.com/harbour\n", "main.go": usesRuntime, "config/crd/ships.yaml": hintCRD})
	p := load(t, project.Options{Dir: tree(t, files)})
	wantNotes(t, p, "or --helm for one of the charts chart)")
}
