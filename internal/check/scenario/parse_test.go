package scenario

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const header = "apiVersion: check.koboshi.dev/v1\nkind: Scenario\nname: test\n"

func TestAMistakeIsNamedWithItsFileLineStepAndField(t *testing.T) {
	step := func(text string) string { return header + "steps:\n- name: grow\n  " + text + "\n" }
	const ref = "apiVersion: v1, kind: Pod, name: a"
	tests := map[string]struct{ text, want string }{
		"typo of a field":            {header + "stpes: []\n", "x.yaml:4: stpes: unknown field; did you mean steps?"},
		"typo in a step":             {step("scael: {}"), `x.yaml:6: step "grow": scael: unknown field; did you mean scale?`},
		"typo below a step":          {step("scale: {" + ref + ", replcas: 1}"), `x.yaml:6: step "grow": scale.replcas: unknown field; did you mean replicas?`},
		"field of another case":      {step("Scale: {}"), "unknown field; did you mean scale?"},
		"missing field":              {step("scale: {" + ref + "}"), `x.yaml:6: step "grow": scale: replicas is missing`},
		"missing steps":              {header, "x.yaml:1: steps is missing"},
		"no steps":                   {header + "steps: []\n", "x.yaml:4: steps: is empty"},
		"empty value":                {header + "steps:\n", "x.yaml:4: steps: is empty"},
		"number for text":            {"apiVersion: check.koboshi.dev/v1\nkind: Scenario\nname: 12\nsteps: []\n", `x.yaml:3: name: must be text; write "12", with the quotes`},
		"text for a number":          {step("scale: {" + ref + ", replicas: many}"), `scale.replicas: must be a whole number, not "many"`},
		"number too large":           {step("scale: {" + ref + ", replicas: 3000000000}"), "3000000000 is too large"},
		"negative number":            {step("scale: {" + ref + ", replicas: -1}"), "-1 is negative"},
		"text for a truth":           {step("run: [a]\n  whileDown: 'true'"), `whileDown: must be true or false, not "true"`},
		"mapping for a list":         {header + "steps: {name: a}\n", "steps: must be a list"},
		"list for a mapping":         {step("scale: []"), "scale: must be a mapping with apiVersion"},
		"text for a command":         {step("run: echo hello"), "run: must be a list"},
		"duration without unit":      {header + "rest: {quiet: 3}\nsteps: []\n", `x.yaml:4: rest.quiet: "3" is not a duration`},
		"negative duration":          {header + "rest: {quiet: -3s}\nsteps: []\n", `"-3s" is negative`},
		"key twice":                  {header + "name: b\nsteps: []\n", "x.yaml:4: name: appears twice"},
		"two actions":                {step("run: [a]\n  delete: {" + ref + "}"), `step "grow": has delete and run; a step can have only one action`},
		"no action":                  {header + "steps:\n- name: grow\n", `x.yaml:5: step "grow": does nothing`},
		"nothing while down":         {step("whileDown: true\n  expect: [{" + ref + "}]"), "whileDown: the step has no action"},
		"step twice":                 {step("run: [a]\n- name: grow\n  run: [a]"), `x.yaml:7: step "grow": name: grow is already the name of an earlier step`},
		"bad step name":              {header + "steps:\n- name: a b\n  run: [a]\n", `name: "a b" must be`},
		"sameAs of a typo":           {step("run: [a]\n- name: back\n  run: [a]\n  sameAs: groww"), `x.yaml:9: step "back": sameAs: groww: unknown earlier step; did you mean grow?`},
		"sameAs of itself":           {step("run: [a]\n  sameAs: grow"), "unknown earlier step; none is defined"},
		"no DNS label":               {"apiVersion: check.koboshi.dev/v1\nkind: Scenario\nname: My Test\nsteps: [{name: a, run: [a]}]\n", `x.yaml:3: name: "My Test" is not a DNS label`},
		"no such file":               {step("apply:\n  - file: nowhere.yaml"), `x.yaml:7: step "grow": apply[0].file: nowhere.yaml does not exist`},
		"file and more":              {step("apply:\n  - {file: a.yaml, name: b}"), "apply[0].name: cannot be combined with file"},
		"object without a name":      {step("apply:\n  - {apiVersion: v1, kind: Pod}"), "the object has no metadata.name"},
		"unknown endpoint":           {step("apply:\n  - {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {url: $(endpoint.stor)/a}}\nendpoints: [{name: store, url: http://a}]"), `x.yaml:7: step "grow": apply[0]: $(endpoint.stor): unknown endpoint; did you mean store?`},
		"endpoint in a command":      {step("run: [curl, $(endpoint.s)]"), "run[1]: $(endpoint.s): unknown endpoint; none is defined"},
		"endpoint in a patch":        {step("patch: {" + ref + ", merge: {a: $(endpoint.s)}}"), "patch.merge: $(endpoint.s): unknown"},
		"endpoint in equals":         {step("expect: [{" + ref + ", field: a, equals: $(endpoint.s)}]"), "expect[0].equals: $(endpoint.s): unknown"},
		"endpoint without a port":    {header + "endpoints: [{name: s, run: [a], url: 'http://a'}]\nsteps: [{name: a, run: [a]}]\n", "x.yaml:4: endpoints[0].url: needs $(PORT)"},
		"endpoint with a port":       {header + "endpoints: [{name: s, url: 'http://a:$(PORT)'}]\nsteps: [{name: a, run: [a]}]\n", "the endpoint has no run command that could use the port"},
		"endpoint without a URL":     {header + "endpoints: [{name: s, url: 'a:80'}]\nsteps: [{name: a, run: [a]}]\n", "is not a URL"},
		"variable of an endpoint":    {header + "endpoints: [{name: s, url: 'http://a', env: 'A-B'}]\nsteps: [{name: a, run: [a]}]\n", "endpoints[0].env"},
		"unknown spared step":        {step("apply: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]\n  spares: [frist]"), `step "grow": spares[0]: frist: unknown earlier step`},
		"rule with a mistake":        {step("run: [a]\nalways:\n- name: r\n  match: {apiVersion: v1, kind: Pod}\n  expr: objct.a == 1"), "x.yaml:10: always[0].expr: undeclared reference to 'objct' (in container ''), in line 1, column 1 of the expression"},
		"rule that is no truth":      {step("run: [a]\nalways: [{name: r, match: {apiVersion: v1, kind: Pod}, expr: '1'}]"), "always[0].expr: must be true or false, but the expression returns int"},
		"rule for a wrong selector":  {step("run: [a]\nalways: [{name: r, match: {apiVersion: v1, kind: Pod, selector: 'a=='}, expr: 'true'}, {name: r, match: {apiVersion: v1, kind: Pod, selector: 'a in b'}, expr: 'true'}]"), "always[1].match.selector: \"a in b\" is not a label selector"},
		"rule twice":                 {step("run: [a]\nalways: [{name: r, match: {apiVersion: v1, kind: Pod}, expr: 'true'}, {name: r, match: {apiVersion: v1, kind: Pod}, expr: 'true'}]"), "always[1].name: r is already the name of an earlier rule"},
		"rule without a kind":        {step("run: [a]\nalways: [{name: r, match: {apiVersion: v1}, expr: 'true'}]"), "always[0].match: kind is missing"},
		"two kinds of patch":         {step("patch: {" + ref + ", merge: {}, json: [{op: add, path: /a, value: 1}]}"), "patch: needs either merge or json"},
		"patch of nothing":           {step("patch: {" + ref + "}"), "patch: needs either merge or json"},
		"merge of a list":            {step("patch: {" + ref + ", merge: []}"), "patch.merge: must be a mapping"},
		"operation of a typo":        {step("patch: {" + ref + ", json: [{op: repalce, path: /a}]}"), "json[0].op: repalce: unknown value; did you mean replace?"},
		"operation without slash":    {step("patch: {" + ref + ", json: [{op: add, path: a}]}"), "json[0].path: must begin with a slash"},
		"unknown subresource":        {step("patch: {" + ref + ", merge: {}, subresource: statsu}"), "did you mean status?"},
		"unknown propagation":        {step("delete: {" + ref + ", propagation: background}"), "did you mean Background?"},
		"bad JSONPath":               {step("expect: [{" + ref + ", field: 'status[?'}]"), `x.yaml:6: step "grow": expect[0].field: "status[?" is not a JSONPath`},
		"JSONPath with braces":       {step("expect: [{" + ref + ", field: '{.status}'}]"), "must not contain braces"},
		"equals without a field":     {step("expect: [{" + ref + ", equals: 1}]"), "expect[0].equals: also needs field"},
		"two conditions in one":      {step("expect: [{" + ref + ", field: a, absent: true}]"), "has absent and field"},
		"bad status":                 {step("expect: [{" + ref + ", status: Ready=Yes}]"), "expect[0].status: Yes: unknown value"},
		"timeout of an expectation":  {step("expect: [{" + ref + ", timeout: 3s}]"), "only wait has a timeout"},
		"bad version of an object":   {step("delete: {apiVersion: a/b/c, kind: Pod, name: a}"), "delete.apiVersion"},
		"name with a slash":          {step("delete: {apiVersion: v1, kind: Pod, name: a/b}"), "delete.name"},
		"bad namespace":              {step("delete: {" + ref + ", namespace: A}"), "delete.namespace"},
		"ignore without a path":      {header + "ignore: [Widget]\nsteps: [{name: a, run: [a]}]\n", "ignore[0]"},
		"empty ledger":               {header + "ledger: []\nsteps: [{name: a, run: [a]}]\n", "ledger: is empty"},
		"an object":                  {"apiVersion: v1\nkind: Pod\n", "x.yaml:1: this is a Pod, not a Scenario; put objects into given"},
		"another version":            {"apiVersion: check.koboshi.dev/v9\nkind: Scenario\n", "this program only supports check.koboshi.dev/v1"},
		"nothing":                    {"# nothing\n---\n", "x.yaml: contains no scenario"},
		"a list":                     {"- a\n", "x.yaml:1: must be a mapping"},
		"no YAML":                    {header + "steps: [\n", "x.yaml:"},
		"a tab":                      {header + "steps:\n\t- a\n", "x.yaml:5: "},
		"a scenario twice":           {header + "steps: [{name: a, run: [a]}]\n---\n" + header + "steps: [{name: a, run: [a]}]\n", "x.yaml:8: name: test is already the name of the scenario in line 3"},
		"a mistake in the second":    {header + "steps: [{name: a, run: [a]}]\n---\n" + header + "stpes: []\n", "x.yaml:9: stpes: unknown field"},
		"merge keys":                 {header + "<<: {}\nsteps: []\n", "is not supported"},
		"not a number":               {step("apply:\n  - {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {a: .nan}}"), ".nan is not a number in JSON"},
		"an anchor that has no end":  {step("apply:\n  - &a {apiVersion: v1, kind: Pod, b: *a}"), "x.yaml:"},
		"a mapping in place of text": {header + "description: {a: b}\nsteps: []\n", "description: must be text, not a mapping"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s\ngave %v\nwant %s", test.text, err, test.want)
			}
		})
	}
}

func TestAnErrorIsOneLineForOneMistake(t *testing.T) {
	_, err := Parse("x.yaml", []byte(header+"stpes: []\nsteps: [{name: a, run: [a]}]\n"))
	if got, want := err.Error(), "x.yaml:4: stpes: unknown field; did you mean steps?"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var p *Problem
	if !errors.As(err, &p) || p.Line != 4 || p.Field != "stpes" {
		t.Errorf("%#v is no Problem", err)
	}
}

func TestAllMistakesAreNamedAtOnce(t *testing.T) {
	_, err := Parse("x.yaml", []byte(header+"a: 1\nb: 2\nsteps: []\n"))
	if got := strings.Count(err.Error(), "\n"); got != 1 {
		t.Errorf("want two lines, got %v", err)
	}
}

func TestEverythingThatCanBeWrittenIsRead(t *testing.T) {
	all, err := Load("testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Name != "everything" || all[1].Name != "second" {
		t.Fatalf("got %d scenarios", len(all))
	}
	s := all[0]
	if got := []any{s.Given[0].File, s.Dir, s.Endpoints[0].Dir, time.Duration(s.Rest.Timeout), s.Steps[3].Scale.Replicas,
		s.Steps[4].PodHealth, s.Steps[5].WhileDown, s.Steps[7].SameAs, s.Steps[8].Delete.Keep, string(s.Steps[1].Patch.Merge),
		s.Steps[9].Suite, time.Duration(s.Steps[9].Timeout)}; !cmp.Equal(got, []any{
		"testdata/widgets.yaml", "testdata", "testdata", 90 * time.Second, int32(3), PodsCrashing, true, "merge", true, `{"spec":{"code":null,"size":"large"}}`, true, 5 * time.Minute}) {
		t.Errorf("got %v", got)
	}
	// A date is decoded as text, as in kubectl.
	if got := string(s.Steps[2].Patch.JSON); !strings.Contains(got, `"value":"2025-01-01"`) {
		t.Errorf("got %s", got)
	}
}

func TestAScenarioWithInlinedFilesSurvivesJSON(t *testing.T) {
	all, err := Load("testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kept []*Scenario
	for _, s := range all {
		inlined, err := s.Inline()
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, inlined)
	}
	for _, inlined := range kept {
		data, err := json.Marshal(inlined)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), `"file"`) {
			t.Errorf("a file is left in %s", data)
		}
		again := &Scenario{}
		if err := json.Unmarshal(data, again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(inlined, again); diff != "" {
			t.Error(diff)
		}
		// In another folder, the relative paths of the files are invalid, so validation
		// must not need the files.
		t.Chdir(t.TempDir())
		if err := again.Validate(); err != nil {
			t.Error(err)
		}
	}
	if s := all[0]; s.Given[0].File == "" {
		t.Error("Inline changed the scenario itself")
	}
}

func TestAFileWithObjectsOfListsIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list.yaml")
	list := "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a, generation: 3}}\n- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n"
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := Manifest{File: file}.objects()
	if err != nil || len(objects) != 2 {
		t.Fatalf("got %v, %v", objects, err)
	}
	if got := objects[0]["metadata"].(map[string]any)["generation"]; got != int64(3) {
		t.Errorf("a whole number became %T", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"testdata/everything.yaml", "testdata/sample.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(header + "steps: [{name: a, run: [a]}]\n"))
	f.Add([]byte(header + "steps: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := Parse("testdata/fuzz.yaml", data)
		if err != nil {
			return
		}
		// Writing and reading a scenario must give an equal scenario.
		for _, s := range all {
			copied, err := s.clone()
			if err != nil {
				t.Fatal(err)
			}
			first, _ := json.Marshal(s)
			second, _ := json.Marshal(copied)
			if string(first) != string(second) {
				t.Errorf("%s\nbecame %s", first, second)
			}
			if err := copied.Validate(); err != nil {
				t.Errorf("%s\nis valid, but its copy is not: %v", data, err)
			}
		}
	})
}

func TestAnObjectIsReadAsKubectlReadsIt(t *testing.T) {
	const fields = `
    plain: {a: yes, b: "yes", c: Off, d: 2025-01-01, e: 0o10, f: 1.0, g: 12, h: null, i: ~, j: y, k: 1e3, l: !!str 5}
`
	inline, err := Parse("x.yaml", []byte(header+"given:\n- apiVersion: v1\n  kind: A\n  metadata: {name: a}\n  spec: "+fields+"steps: [{name: a, run: [a]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: A\nmetadata: {name: a}\nspec: "+fields), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := Manifest{File: file}.objects()
	if err != nil {
		t.Fatal(err)
	}
	got := wholeNumbers(inline[0].Given[0].Object)
	if diff := cmp.Diff(objects[0], got); diff != "" {
		t.Errorf("from a file, and in place:\n%s", diff)
	}
}

func TestScenariosOfSeveralFilesAreInlinedAndHaveTheirOwnNames(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	scenario := func(name string) string {
		return strings.Replace(header, "name: test", "name: "+name, 1) + "given: [{file: map.yaml}]\nsteps: [{name: a, run: [\"true\"]}]\n"
	}
	file("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	one, two, third := file("1.yaml", scenario("one")+"---\n"+scenario("two")), file("2.yaml", scenario("three")), file("3.yaml", scenario("two"))
	all, from, err := LoadAll([]string{one, two})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"one": one, "two": one, "three": two}, from); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for _, s := range all {
		if len(s.Given) != 1 || s.Given[0].File != "" || s.Given[0].Object["kind"] != "ConfigMap" {
			t.Errorf("%s: given %v", s.Name, s.Given)
		}
	}
	if _, _, err := LoadAll([]string{one, third}); err == nil || err.Error() != third+": "+one+" also has a scenario named two; rename one of the two" {
		t.Errorf("a name twice: %v", err)
	}
}
