package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// files returns the file system of an archive.
func files(t testing.TB, archive string) fs.FS {
	t.Helper()
	fsys, err := txtar.FS(txtar.Parse([]byte(archive)))
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// imported reads the suite in an archive.
func imported(t testing.TB, archive, dir string) *Suite {
	t.Helper()
	s, err := Read(files(t, archive), dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// summary describes a suite, one line for each step, each condition and each part that is left out.
func summary(s *Suite) string {
	var out strings.Builder
	for _, c := range s.Cases {
		if c.Scenario == nil {
			fmt.Fprintf(&out, "%s: nothing\n", c.Dir)
		} else {
			fmt.Fprintf(&out, "%s: %s", c.Dir, c.Scenario.Name)
			if c.Short {
				out.WriteString(", cut short")
			}
			out.WriteString("\n")
			steps(&out, c.Scenario)
		}
		leftOut(&out, c.LeftOut)
	}
	leftOut(&out, s.LeftOut)
	return out.String()
}

func steps(out *strings.Builder, sc *scenario.Scenario) {
	for _, m := range sc.Given {
		fmt.Fprintf(out, "  given %s\n", refOf(m.Object, ""))
	}
	if sc.Rest.Timeout != 0 {
		fmt.Fprintf(out, "  timeout %s\n", sc.Rest.Timeout)
	}
	for _, st := range sc.Steps {
		fmt.Fprintf(out, "  %s:", st.Name)
		for _, m := range st.Apply {
			fmt.Fprintf(out, " apply %s", refOf(m.Object, ""))
		}
		if p := st.Patch; p != nil {
			fmt.Fprintf(out, " patch %s %s%s", p.ObjectRef, p.Subresource, p.Merge)
		}
		if d := st.Delete; d != nil {
			fmt.Fprintf(out, " delete %s %s", d.ObjectRef, d.Propagation)
		}
		out.WriteString("\n")
		for _, c := range st.Wait {
			fmt.Fprintf(out, "    wait %s\n", c.String())
		}
		for _, c := range st.Expect {
			fmt.Fprintf(out, "    expect %s\n", c.String())
		}
	}
}

func leftOut(out *strings.Builder, all []LeftOut) {
	for _, l := range Merged(all) {
		fmt.Fprintf(out, "  - %s: %s: %s\n", l.Place(), l.What, l.Why)
	}
}

// check compares the summary of a suite. Spaces at the end of lines have no meaning.
func check(t *testing.T, archive, want string) {
	t.Helper()
	trim := func(text string) string {
		lines := strings.Split(strings.Trim(text, "\n"), "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " ")
		}
		return strings.Join(lines, "\n")
	}
	if diff := cmp.Diff(trim(want), trim(summary(imported(t, archive, ".")))); diff != "" {
		t.Errorf("want, and imported:\n%s", diff)
	}
}

func TestAFolderWithoutASuiteIsAnError(t *testing.T) {
	fsys := files(t, "-- config/00-crd.yaml --\nkind: A\n-- config/readme.md --\n")
	if _, err := Read(fsys, "."); !errors.Is(err, ErrNone) {
		t.Errorf("without a case: %v", err)
	}
	if _, err := Read(fsys, "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
	if _, err := Read(fsys, "config/readme.md"); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("with a file: %v", err)
	}
}

func TestADamagedSuiteGivesTheReason(t *testing.T) {
	check(t, "-- chainsaw-test.yaml --\nkind: Test\n", "  - chainsaw-test.yaml:1: Test: it is not a test of chainsaw")
}

// widget is an object without a line break at its end.
const widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"

func TestScenariosHaveUniqueNames(t *testing.T) {
	s := imported(t, strings.Join([]string{
		"-- x/create/00-a.yaml --\n" + widget, "-- x/create/00-assert.yaml --\n" + widget,
		"-- y/create/00-a.yaml --\n" + widget, "-- y/create/00-assert.yaml --\n" + widget,
		"-- y/Create_/00-a.yaml --\n" + widget, "-- y/Create_/00-assert.yaml --\n" + widget,
	}, ""), ".")
	seen := map[string]bool{}
	for _, sc := range s.Scenarios() {
		if seen[sc.Name] {
			t.Errorf("two scenarios are named %s", sc.Name)
		}
		seen[sc.Name] = true
	}
	if want := map[string]bool{"create": true, "y-create": true, "y-create-2": true}; !cmp.Equal(seen, want) {
		t.Errorf("names %v, want %v", seen, want)
	}
}

func TestEqualPartsThatAreLeftOutAreCounted(t *testing.T) {
	got := Merged([]LeftOut{{"a", 3, "sleep", "why"}, {"a", 5, "x", "why"}, {"a", 9, "sleep", "why"}, {"b", 1, "sleep", "why"}})
	want := []LeftOut{{"a", 3, "sleep (2 times)", "why"}, {"a", 5, "x", "why"}, {"b", 1, "sleep", "why"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzEveryWrittenScenarioCanBeRead(f *testing.F) {
	f.Add("-- kuttl-test.yaml --\napiVersion: kuttl.dev/v1beta1\nkind: TestSuite\ntestDirs: [e2e]\ntimeout: 60\n-- e2e/a/00-a.yaml --\n" + widget + "spec: {a.b/c: [1, {x: null}], \"{\": 1}\n-- e2e/a/00-assert.yaml --\n" + widget +
		"status: {conditions: [{type: Ready, status: \"True\", reason: A}], n: [{a: 1, b: {}}, {a: 2}], e: []}\n-- e2e/a/01-errors.yaml --\n" + widget)
	f.Add("-- chainsaw-test.yaml --\napiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: a}\nspec: {namespace: n, steps: [{name: s, try: [{apply: {file: a.yaml}}, {wait: {apiVersion: v1, kind: Pod, name: p, for: {jsonPath: {path: '{.a}', value: 3}}}}, {script: {content: 'echo a'}}, {delete: {ref: {apiVersion: v1, kind: Pod, name: p}}}]}]}\n-- a.yaml --\n" + widget)
	f.Add("-- x/00-step.yaml --\napiVersion: kuttl.dev/v1beta1\nkind: TestStep\napply: [../b.yaml]\ndelete: [{apiVersion: v1, kind: Pod, name: a}]\ncommands: [{script: kubectl get a}]\n-- b.yaml --\napiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: $NAMESPACE}, data: {x: $(endpoint.a)}}]\n")
	f.Fuzz(func(t *testing.T, archive string) {
		fsys, err := txtar.FS(txtar.Parse([]byte(archive)))
		if err != nil {
			return
		}
		s, err := Read(fsys, ".")
		if err != nil {
			return
		}
		for _, c := range s.Cases {
			if c.Scenario == nil {
				if len(c.LeftOut) == 0 {
					t.Errorf("%s was left out without a reason", c.Dir)
				}
				continue
			}
			if err := c.Scenario.Validate(); err != nil {
				t.Errorf("%s: %v", c.Dir, err)
			}
			data, err := c.Scenario.YAML(c.Dir + "\n" + fmt.Sprint(c.LeftOut))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := scenario.Parse("a.yaml", data); err != nil {
				t.Errorf("%v\n%s", err, data)
			}
		}
	})
}
