package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/project"
)

func TestReplayShowsEveryCommandOfAFinding(t *testing.T) {
	s := &scenario.Scenario{
		Dir:       "/there",
		Endpoints: []scenario.Endpoint{{Name: "store", Run: []string{"serve", "--all"}, Dir: "/elsewhere"}, {Name: "running"}},
		Steps:     []scenario.Step{{Name: "import", Run: []string{"sh", "-c", "rm -rf ~"}}, {Name: "other"}},
		Ledger:    []string{"list", "\x1b[2Jhidden"},
	}
	text := strings.Join(commandsOf(s, project.Options{Dir: "/project", Command: []string{"./run"}, Args: []string{"a b"}, Env: []string{"TOKEN", "MODE=x"}}), "\n")
	for _, want := range []string{
		"./run 'a b'", "in /project", "serve --all", "in /elsewhere", "sh -c 'rm -rf ~'", "in /there", `\x1b[2Jhidden`,
		"TOKEN (the variable of your environment)", "MODE (set",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") || strings.Contains(text, "MODE=x") {
		t.Errorf("it shows too much:\n%q", text)
	}
	text = strings.Join(commandsOf(&scenario.Scenario{}, project.Options{Dir: "/project", Main: "cmd", Args: []string{"--fast"}}), "\n")
	for _, want := range []string{"builds and runs the manager of /project", "--main=cmd", "--args=--fast"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}

func TestOnlyYesIsAnAgreement(t *testing.T) {
	for answer, yes := range map[string]bool{"y\n": true, "YES\n": true, "yes": true, "": false, "\n": false, "n\n": false, "yesterday\n": false} {
		if agreed, err := ask(t.Context(), strings.NewReader(answer), &strings.Builder{}, "Run them?"); err != nil || agreed != yes {
			t.Errorf("after %q: %t, %v", answer, agreed, err)
		}
	}
}

func TestOnlyFindingsOfThisFolderAreNotAskedAbout(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, path := range []string{".koboshi/findings/own.json", "other/.koboshi/findings/foreign.json", "foreign.json"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../foreign.json", ".koboshi/findings/link.json"); err != nil {
		t.Fatal(err)
	}
	for path, own := range map[string]bool{
		".koboshi/findings/own.json": true, filepath.Join(dir, ".koboshi/findings/own.json"): true, "other/../.koboshi/findings/own.json": true,
		"other/.koboshi/findings/foreign.json": false, "foreign.json": false, ".koboshi/findings/link.json": false, "none.json": false,
	} {
		if ownFinding(path) != own {
			t.Errorf("%s: own is %t", path, !own)
		}
	}
}

func TestValuesOfEnvAreTakenFromTheEnvironmentAndNotKept(t *testing.T) {
	t.Setenv("PLANTED", "planted-4711")
	var f checkFlags
	if err := f.parse("finding.json", []string{"--env=PLANTED", "--env=MODE=fast-4711", "--env=KUBE=$(KUBECONFIG)", "--", "run"}, []string{"MODE=slow-4711"}, nil); err != nil {
		t.Fatal(err)
	}
	o, err := f.options(f.flags, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"PLANTED=planted-4711", "KUBE=$(KUBECONFIG)", "MODE=slow-4711"}; !slices.Equal(f.project.Env, want) {
		t.Errorf("the controller gets %q", f.project.Env)
	}
	for name, texts := range map[string][]string{"the report's command": {o.Command}, "its arguments": o.Args, "a finding": f.subject()} {
		if text := strings.Join(texts, " "); strings.Contains(text, "4711") || !strings.Contains(text, "--env=PLANTED ") || !strings.Contains(text, "--env=KUBE=$(KUBECONFIG)") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if got := privateValues(f.project.Env); !slices.Equal(got, []string{"planted-4711", "slow-4711"}) {
		t.Errorf("private values: %q", got)
	}
	for _, wrong := range [][]string{{"NOT_SET_ANYWHERE"}, {"=value-4711"}, {"a b=value-4711"}} {
		if _, err := project.Environment(wrong); err == nil || strings.Contains(err.Error(), "4711") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestValuesOfAChartAreNotKeptAndAReplayAsksForThem(t *testing.T) {
	var f checkFlags
	if err := f.parse("finding.json", []string{"--helm=chart", "--set=db.password=hunter-4711,tag=v-4711", "--set=list={4711,4712}", "--", "run"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	o, err := f.options(f.flags, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, texts := range map[string][]string{"the report's command": {o.Command}, "its arguments": o.Args, "a finding": f.subject(), "the journal": f.identity(f.flags)} {
		if text := strings.Join(texts, " "); strings.Contains(text, "471") || !strings.Contains(text, "--set=db.password --set=tag --set=list") {
			t.Errorf("%s: %s", name, text)
		}
	}
	saved := f.subject()
	for _, test := range []struct {
		given []string
		want  string // in the error
	}{
		{nil, "--set db.password: the value is missing, because values are not saved; write --set db.password=VALUE"},
		{[]string{"db.password=a,tag=b"}, "--set list: the value is missing"},
		{[]string{"db.password=a,tag=b", "list={c,d}"}, ""},
	} {
		var again checkFlags
		if err := again.parse("finding.json", saved, nil, test.given); err != nil {
			t.Fatal(err)
		}
		_, err := again.options(again.flags, nil)
		if test.want == "" && (err != nil || !slices.Equal(again.project.Set, test.given)) {
			t.Errorf("with %q, the chart gets %q, %v", test.given, again.project.Set, err)
		}
		if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("with %q: %v", test.given, err)
		}
	}
}

func TestReplayNamesTheManifestsThatWereNotSaved(t *testing.T) {
	for _, test := range []struct {
		o        project.Options
		terminal bool
		want     string
	}{
		{project.Options{Manifests: []string{"-"}}, true, "pipe the same manifests into koboshi check replay --yes finding.json"},
		{project.Options{Manifests: []string{"-"}}, false, ""},
		{project.Options{Manifests: []string{"install.yaml"}}, true, ""},
	} {
		err := piped("finding.json", test.o, test.terminal)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasSuffix(err.Error(), test.want)) {
			t.Errorf("%v, at a terminal %t: %v", test.o.Manifests, test.terminal, err)
		}
	}
}

func TestFlagThatWouldHaveNoEffectIsRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"--resume continues to inject faults": {"--plan", "--resume"},
		"-o writes a report":                  {"--plan", "-o", "json"},
		"--paths runs scenarios":              {"--plan", "--paths"},
		"--samples names samples":             {"--samples=samples", "--scenario=create.yaml"},
		"-f names values for a chart":         {"-f", "values.yaml"},
		"--main names the manager to build":   {"--main=cmd", "--", "run"},
	} {
		var f checkFlags
		if err := f.parse("", args, nil, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := f.options(f.flags, nil); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "omit") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestReplayUsesTheOriginalScenarioIfItIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scenarios.yaml")
	const text = "apiVersion: check.koboshi.dev/v1\nkind: Scenario\nname: secret\nsteps:\n- name: create\n  apply: [{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: original}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	saved := &report.Saved{Scenario: scenario.Scenario{Name: "secret"}}
	if err := useScenario(saved, []string{file}); err != nil || len(saved.Scenario.Steps) != 1 {
		t.Errorf("the scenario is %+v, %v", saved.Scenario, err)
	}
	saved.Scenario.Name = "another"
	if err := useScenario(saved, []string{file}); err == nil || !strings.Contains(err.Error(), "no scenario is named another") {
		t.Errorf("for another scenario: %v", err)
	}
	if err := useScenario(saved, nil); err != nil || saved.Scenario.Name != "another" {
		t.Errorf("without a file: %v", err)
	}
}
