package settings

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/opinions"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/ship/choices"
	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

const complete = `check:
  ignore:
  - Widget.example.com status.lastSeen
  - ConfigMap default/web-* data.*
  rest: {quiet: 1s, timeout: 1m}
  faults: {only: [conflict, restart], skip: [restart]}
  interference: {skip: [Job.batch]}
  inputs: {inert: [Widget.example.com spec.note]}
  conversions: {lossy: [Widget.example.com spec.size]}
  upgrade: {expected: [Deployment.apps spec.template.*]}
  requests: {budget: {web-life: {get pods: 3, update widgets.example.com/status: 2}}, lists: [nodes]}
  profile: full
  pods: [{name: db-*, exec: [{command: [db, status], stdout: ok}]}]
  run: [db=bin/db, web=/srv/web]
  givens: [config/secret.yaml, /etc/other.yaml]
ship:
  image: registry.example.com/team/operator:v1.2.0
  platforms: [linux/amd64, linux/arm/v7]
  base: gcr.io/distroless/static:nonroot
  programs: {viewer: ./tools/viewer}
  olm: {channels: [stable, candidate]}
`

func TestEverySettingIsRead(t *testing.T) {
	got, err := Parse("project/koboshi.yaml", []byte(complete))
	if err != nil {
		t.Fatal(err)
	}
	want := &File{Path: "project/koboshi.yaml", Check: opinions.Opinions{
		Ignore:       []string{"Widget.example.com status.lastSeen", "ConfigMap default/web-* data.*"},
		Rest:         scenario.Rest{Quiet: scenario.Duration(time.Second), Timeout: scenario.Duration(time.Minute)},
		Faults:       opinions.Faults{Only: []string{"conflict", "restart"}, Skip: []string{"restart"}},
		Interference: opinions.Interference{Skip: []string{"Job.batch"}},
		Inputs:       opinions.Inputs{Inert: []string{"Widget.example.com spec.note"}},
		Conversions:  opinions.Conversions{Lossy: []string{"Widget.example.com spec.size"}},
		Upgrade:      opinions.Upgrade{Expected: []string{"Deployment.apps spec.template.*"}},
		Requests: opinions.Requests{
			Budget: map[string]map[string]int32{"web-life": {"get pods": 3, "update widgets.example.com/status": 2}}, Lists: []string{"nodes"},
		},
		Profile: "full",
		Pods:    []scenario.PodAnswers{{Name: "db-*", Exec: []scenario.ExecAnswer{{Command: []string{"db", "status"}, Stdout: "ok"}}}},
		Run:     []string{"db=" + filepath.Join("project", "bin", "db"), "web=/srv/web"},
		Givens:  []string{filepath.Join("project", "config", "secret.yaml"), "/etc/other.yaml"},
	}, Ship: choices.Choices{
		Image: "registry.example.com/team/operator:v1.2.0", Platforms: []string{"linux/amd64", "linux/arm/v7"},
		Base: "gcr.io/distroless/static:nonroot", Programs: map[string]string{"viewer": "./tools/viewer"},
		OLM: choices.OLM{Channels: []string{"stable", "candidate"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := len(got.Check.Summary()); n != reflect.TypeFor[opinions.Opinions]().NumField()+3 {
		t.Errorf("the summary has %d entries: %q", n, got.Check.Summary())
	}
}

func TestAMistakeInTheSettingsIsNamedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"chekc: {}":                                           "koboshi.yaml:1: chekc: unknown field; did you mean check?",
		"check:\n  ignroe: []":                                "koboshi.yaml:2: check.ignroe: unknown field; did you mean ignore?",
		"check:\n  ignore:\n  - a\n":                          `koboshi.yaml:3: check.ignore[0]: "a" must be a kind and a path`,
		"check:\n  rest:\n    quiet: 3\n":                     `koboshi.yaml:3: check.rest.quiet: "3" is not a duration`,
		"check:\n  faults:\n    skip: [restrat]":              "koboshi.yaml:3: check.faults.skip[0]: restrat: unknown kind of fault; did you mean restart?",
		"check:\n  faults: {onlyy: []}":                       "did you mean only?",
		"check:\n  interference: {skip: [a b]}":               `"a b" must be a kind with its group`,
		"check:\n  inputs: {inert: [spec.note]}":              `check.inputs.inert[0]: "spec.note" must be a kind with its group, and a field`,
		"check:\n  conversions: {lossy: [spec.size]}":         `check.conversions.lossy[0]: "spec.size" must be a kind with its group, and a field`,
		"check:\n  upgrade: {expected: [a]}":                  `check.upgrade.expected[0]: "a" must be a kind and a path`,
		"check:\n  requests: {budget: [a]}":                   "check.requests.budget: must be a mapping",
		"check:\n  requests:\n    budget:\n      a: {get: 3}": "koboshi.yaml:4: check.requests.budget.a.get: must be a verb and a resource",
		"check:\n  requests: {budget: {a: {get pods: -1}}}":   "-1 is not a number of requests",
		"check:\n  requests: {budget: {a: {get pods: x}}}":    "must be a whole number",
		"check:\n  requests: {lists: [pods/exec]}":            `check.requests.lists[0]: "pods/exec" must be a resource`,
		"check:\n  profile: workload":                         "check.profile: workload: unknown profile; did you mean workloads?",
		"check:\n  givens: ['']":                              "check.givens[0]: is empty",
		"check:\n  run: [web]":                                "check.run[0]: \"web\" is not of the form IMAGE=PATH",
		"check:\n  pods: [{}]":                                "check.pods[0]: answers nothing",
		"check:\n  pods: [{ports: [{port: 1, endpoint: a}]}]": "check.pods[0].ports[0].endpoint: there is no endpoint",
		"check:\n  ignore: a":                                 "check.ignore: must be a list",
		"check: {}\n---\ncheck: {}":                           "koboshi.yaml:3: the file has a second document",
		"check: {}\ncheck: {}":                                "koboshi.yaml:2: check: appears twice",
		"check: [":                                            "koboshi.yaml:",
		"ship:\n  image: 'a b'":                               `koboshi.yaml:2: ship.image: "a b" is not the name of an image`,
		"ship:\n  base: 'A:'":                                 `ship.base: "A:" is not the name of an image`,
		"ship:\n  certificates: vault":                        `ship.certificates: "vault" is no source of certificates; use cert-manager or self-signed`,
		"ship:\n  certificates: olm":                          "ship.certificates: OLM always gives the webhooks of a bundle their certificate: make one with --olm",
		"ship:\n  programs: {a/b: ./c}":                       `ship.programs.a/b: "a/b" is not the name of a file`,
		"ship:\n  olm: {channels: ['a,b']}":                   `ship.olm.channels[0]: "a,b" is not the name of a channel`,
		"ship:\n  watchNamespaces: namespaces":                `ship.watchNamespaces: "namespaces" is neither a flag`,
		"ship:\n  platform: [a]":                              "did you mean platforms?",
	} {
		_, err := Parse("koboshi.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n%v\nwant %s", text, err, want)
		}
	}
}

func TestWithoutAFileNothingChanges(t *testing.T) {
	dir := t.TempDir()
	if got, err := Find(dir); err != nil || !reflect.DeepEqual(got, &File{}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Load(filepath.Join(dir, Name)); err == nil {
		t.Error("a file that does not exist was read")
	}
	if err := os.WriteFile(filepath.Join(dir, Name), []byte("# nothing yet\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(dir); err != nil || len(got.Check.Summary()) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSchemaAndTypesNameTheSameSettings(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	definitions := root["definitions"].(map[string]any)
	for name, of := range map[string]reflect.Type{
		"": reflect.TypeFor[File](), "check": reflect.TypeFor[opinions.Opinions](), "ship": reflect.TypeFor[choices.Choices](), "olm": reflect.TypeFor[choices.OLM](), "faults": reflect.TypeFor[opinions.Faults](),
		"interference": reflect.TypeFor[opinions.Interference](), "inputs": reflect.TypeFor[opinions.Inputs](), "conversions": reflect.TypeFor[opinions.Conversions](), "upgrade": reflect.TypeFor[opinions.Upgrade](), "requests": reflect.TypeFor[opinions.Requests](), "rest": reflect.TypeFor[scenario.Rest](),
		"pods": reflect.TypeFor[scenario.PodAnswers](), "exec": reflect.TypeFor[scenario.ExecAnswer](),
		"podPort": reflect.TypeFor[scenario.PodPort](),
	} {
		s := root
		if name != "" {
			s = definitions[name].(map[string]any)
		}
		properties := s["properties"].(map[string]any)
		want := slices.Sorted(slices.Values(strictyaml.Names(strictyaml.Fields(of))))
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(properties))); diff != "" {
			t.Errorf("%s: fields of the type, and of the schema:\n%s", of.Name(), diff)
		}
		if s["additionalProperties"] != false {
			t.Errorf("%s: the schema allows unknown fields", of.Name())
		}
		for field, p := range properties {
			if description, _ := p.(map[string]any)["description"].(string); description == "" {
				t.Errorf("%s.%s: there is no description for editors to show", of.Name(), field)
			}
		}
	}
	var kinds []string
	for _, kind := range definitions["kind"].(map[string]any)["enum"].([]any) {
		kinds = append(kinds, kind.(string))
	}
	var want []string
	for _, kind := range fault.Kinds() {
		want = append(want, string(kind))
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(kinds))); diff != "" {
		t.Errorf("kinds of faults, and those in the schema:\n%s", diff)
	}
	shared(t, definitions)
}

// shared checks that the parts that the schema shares with the schema of scenarios are the same in
// both.
func shared(t *testing.T, definitions map[string]any) {
	t.Helper()
	var other map[string]any
	if err := json.Unmarshal(scenario.Schema(), &other); err != nil {
		t.Fatal(err)
	}
	theirs := other["definitions"].(map[string]any)
	ignore := definitions["check"].(map[string]any)["properties"].(map[string]any)["ignore"]
	for name, pair := range map[string][2]any{
		"rest": {definitions["rest"], theirs["rest"]}, "duration": {definitions["duration"], theirs["duration"]},
		"ignore": {ignore, other["properties"].(map[string]any)["ignore"]},
	} {
		if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
			t.Errorf("%s in the schema of scenarios, and here:\n%s", name, diff)
		}
	}
}

func TestTheLinesOfASilenceCanBeRead(t *testing.T) {
	silence := opinions.Silence(judge.Finding{Verdict: judge.Diverged, Fault: &fault.Fault{Kind: fault.KillLost}, Differences: []state.Difference{
		{Object: "* default/web-*", Path: "data[a: b #c]"}, {Object: "Deployment.apps default/web", Path: `spec.template.spec.containers[app].args[]`, Want: "1"},
	}})
	f, err := Parse(Name, []byte(silence.Add))
	if err != nil {
		t.Fatalf("%v\n%s", err, silence.Add)
	}
	want := []string{"* default/web-* data[a: b #c]", "Deployment.apps default/web spec.template.spec.containers[app].args[]"}
	if !slices.Equal(f.Check.Ignore, want) {
		t.Errorf("read %q from\n%s", f.Check.Ignore, silence.Add)
	}
}

func FuzzSettingsAreReadOrRefused(f *testing.F) {
	f.Add([]byte(complete))
	f.Add([]byte("check: &a {ignore: [*a]}"))
	f.Add([]byte("check: !!binary x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := Parse("koboshi.yaml", data); err == nil && len(file.Check.Complaints("check")) > 0 {
			t.Errorf("%q was accepted: %v", data, file.Check.Complaints("check"))
		}
	})
}

func TestTheHandbooksSettingsCanBeRead(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/check/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile("../../docs/guide/project/ship.md")
	if err != nil {
		t.Fatal(err)
	}
	page = append(page, other...)
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(blocks) == 0 {
		t.Error("the page shows no settings")
	}
	for _, block := range blocks {
		if _, err := Parse("settings.md", []byte(block[1])); err != nil {
			t.Error(err)
		}
	}
	for _, line := range regexp.MustCompile("(?m)^\\| `([A-Z*][^`]* [^`]*)` \\|").FindAllStringSubmatch(string(page), -1) {
		if _, _, _, ok := state.SplitIgnore(line[1]); !ok {
			t.Errorf("%q is not a line of an ignore list", line[1])
		}
	}
	for name := range properties(t) {
		if !strings.Contains(string(page), "`"+name) {
			t.Errorf("the page does not explain %s", name)
		}
	}
}

// properties returns the settings of the section check in the schema.
func properties(t *testing.T) map[string]any {
	t.Helper()
	var root struct {
		Definitions struct {
			Check struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	if len(root.Definitions.Check.Properties) == 0 {
		t.Fatal("the schema has no settings")
	}
	return root.Definitions.Check.Properties
}
