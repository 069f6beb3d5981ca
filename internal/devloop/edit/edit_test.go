package edit

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const types = `// Package v1 is an API.
// +groupName=sea.example.com
package v1

import (
	"go/parser"
	"go/token"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShipSpec describes a ship.
type ShipSpec struct {
	// +kubebuilder:validation:Minimum=1
	Masts int ` + "`json:\"masts\"`" + `
	Since metav1.Time
}

// +kubebuilder:rbac:groups=sea.example.com,resources=ships,verbs=get

// Sail sails.
func (s ShipSpec) Sail() {
	fmt.Println("ahoy") // loudly
}
`

func TestAnEditIsClassifiedByWhatItCanChange(t *testing.T) {
	replaced := func(old, with string) func(map[string]string) {
		return func(files map[string]string) {
			if !strings.Contains(types, old) {
				t.Fatalf("%q is not in the file", old)
			}
			files["api/v1/ship.go"] = strings.Replace(types, old, with, 1)
		}
	}
	written := func(name, text string) func(map[string]string) {
		return func(files map[string]string) { files[name] = text }
	}
	for name, c := range map[string]struct {
		change func(map[string]string)
		want   Edit
	}{
		"a body":                        {replaced(`"ahoy"`, `"avast"`), Edit{Build: true}},
		"a comment in a body":           {replaced("loudly", "softly"), Edit{Build: true}},
		"the comment of a function":     {replaced("Sail sails", "Sail sets sail"), Edit{Build: true}},
		"the signature of a function":   {replaced("Sail()", "Sail(int)"), Edit{Build: true}},
		"an import of a body":           {replaced(`"fmt"`, "\"fmt\"\n\t\"os\""), Edit{Build: true}},
		"an import of a type":           {replaced("apimachinery/pkg/apis/meta/v1", "other"), Edit{Build: true, Generate: true}},
		"a field":                       {replaced("Masts int", "Masts int32"), Edit{Build: true, Generate: true}},
		"the description of a type":     {replaced("describes a ship", "describes a boat"), Edit{Build: true, Generate: true}},
		"a marker of a field":           {replaced("Minimum=1", "Minimum=2"), Edit{Build: true, Generate: true}},
		"a marker of a package":         {replaced("=sea", "=lake"), Edit{Build: true, Generate: true}},
		"a marker between declarations": {replaced("verbs=get", "verbs=get;list"), Edit{Build: true, Generate: true}},
		"a method that is generated":    {replaced("Sail()", "DeepCopy()"), Edit{Build: true, Generate: true}},
		"a method of the schema":        {replaced("Sail()", "MarshalText()"), Edit{Build: true, Generate: true}},
		"a test beside embedded files":  {written("internal/page/page_test.go", "package page"), Edit{}},
		"a file that cannot be parsed":  {replaced("type ShipSpec struct", "type ShipSpec"), Edit{Build: true, Generate: true}},
		"a deleted file":                {func(files map[string]string) { delete(files, "api/v1/ship.go") }, Edit{Build: true, Generate: true}},
		"go.mod":                        {written("go.mod", "module example.com/b"), Edit{Build: true, Generate: true, Module: true}},
		"a test":                        {written("api/v1/ship_test.go", "package v1"), Edit{}},
		"a manifest":                    {written("config/manager/manager.yaml", "kind: Deployment"), Edit{Apply: true}},
		"a sample":                      {written("config/samples/ship.yaml", "kind: Ship"), Edit{Samples: true}},
		"the header":                    {written("hack/boilerplate.go.txt", "/* */"), Edit{Generate: true}},
		"a page":                        {written("README.md", "# Ships"), Edit{}},
		"an embedded file":              {written("internal/page/index.html", "<p>"), Edit{Build: true}},
		"a file of another module":      {written("tools/main.go", "package main"), Edit{}},
		"a hidden file":                 {written("api/v1/.ship.go.swp", "package v1"), Edit{}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{
				"api/v1/ship.go":        types,
				"go.mod":                "module example.com/a",
				"internal/page/page.go": "package page\n\nimport _ \"embed\"\n\n//go:embed index.html\nvar index string\n",
				"tools/go.mod":          "module example.com/tools",
			}
			before := taken(t, files, nil)
			c.change(files)
			got := Between(before, taken(t, files, nil))
			changed := len(got.Files)
			got.Files = nil
			if got.Generate != c.want.Generate || got.Build != c.want.Build || got.Apply != c.want.Apply || got.Samples != c.want.Samples || got.Module != c.want.Module {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if !got.Empty() && changed != 1 {
				t.Errorf("%d files have changed, want 1", changed)
			}
		})
	}
}

// taken writes files to a new folder and takes a snapshot of it.
func taken(t *testing.T, files map[string]string, earlier Snapshot) Snapshot {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return take(t, dir, earlier)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, dir string, earlier Snapshot) Snapshot {
	t.Helper()
	s, err := Layout{Dir: dir}.Take(earlier)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAFileThatIsSavedUnchangedIsNoEdit(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "ship.go")
	write(t, name, types)
	before := take(t, dir, nil)
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(name, later, later); err != nil {
		t.Fatal(err)
	}
	if e := Between(before, take(t, dir, before)); len(e.Files) > 0 || !e.Empty() {
		t.Errorf("got %+v", e)
	}
}

func TestOnlyChangedFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	name, other := filepath.Join(dir, "ship.go"), filepath.Join(dir, "sail.go")
	write(t, name, types)
	write(t, other, types)
	before := take(t, dir, nil)
	if err := os.Chmod(name, 0); err != nil { // reading it would fail, except for root
		t.Fatal(err)
	}
	write(t, other, strings.Replace(types, "ahoy", "avast!", 1))
	after := take(t, dir, before)
	if after["ship.go"] != before["ship.go"] {
		t.Error("the unchanged file differs")
	}
	if e := Between(before, after); !slices.Equal(e.Files, []string{"sail.go"}) || e.Generate || !e.Build {
		t.Errorf("got %+v", e)
	}
}

// Whatever the code looks like, the body of a function has no influence.
func FuzzTheBodyOfAFunctionIsNotDeclared(f *testing.F) {
	f.Add(types, "return", "panic(1)")
	f.Add("package p\nconst (\n\tA = iota // +marker\n)\n", "x := 1; _ = x", "")
	f.Fuzz(func(t *testing.T, source, body, other string) {
		with := func(body string) string { return source + "\nfunc fuzzed() {\n" + body + "\n}\n" }
		if !parses(with(body)) || !parses(with(other)) || strings.ContainsAny(body+other, "+}{`\"'/*") || strings.Contains(body+other, "type") || strings.Contains(body+other, "const") {
			declarations([]byte(with(body)))
			return
		}
		if declarations([]byte(with(body))).sum != declarations([]byte(with(other))).sum {
			t.Errorf("the bodies %q and %q make a difference", body, other)
		}
	})
}

func parses(source string) bool {
	_, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments)
	return err == nil
}

func TestTheFilesOfAProgramInAnotherLanguageRestartIt(t *testing.T) {
	layout := Layout{Program: []string{"src/**", "*.py", "dist/*.js"}, Manifests: []string{"deploy"}, Samples: []string{"deploy/cr.yaml"}}
	for name, want := range map[string]Edit{
		"src/a/b.py":         {Restart: true},
		"src/deep/deep/b.py": {Restart: true},
		"main.py":            {Restart: true},
		"dist/a.js":          {Restart: true},
		".env":               {Apply: true},
		"deploy/crd.yaml":    {Apply: true},
		"deploy/cr.yaml":     {Samples: true},
		"other/main.py":      {},
		"main.go":            {},
		"config/crd.yaml":    {},
		"node_modules/a.py":  {},
	} {
		layout.Dir = t.TempDir()
		write(t, filepath.Join(layout.Dir, name), "1")
		var before Snapshot
		after, err := layout.Take(before)
		if err != nil {
			t.Fatal(err)
		}
		got := Between(before, after)
		got.Files = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheModuleOfTheMainPackageBelongsToTheProject(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "operator/go.mod"), "module a")
	write(t, filepath.Join(dir, "operator/cmd/main.go"), "package main")
	for main, want := range map[string]bool{"": false, "operator/cmd": true, "operator": true, "oper": false} {
		s, err := Layout{Dir: dir, Main: main}.Take(nil)
		if _, got := s["operator/cmd/main.go"]; err != nil || got != want {
			t.Errorf("with the main package in %q: %t, %v", main, got, err)
		}
	}
}

func TestEitherEditIsRequiredByBoth(t *testing.T) {
	got := Edit{Files: []string{"b", "c"}, Generate: true, Build: true}.And(Edit{Files: []string{"a", "b"}, Apply: true, Samples: true, Restart: true, Module: true})
	want := Edit{Files: []string{"a", "b", "c"}, Generate: true, Build: true, Apply: true, Samples: true, Restart: true, Module: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
