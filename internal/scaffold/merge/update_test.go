package merge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnUpdateOfGoModRaisesVersionsAndNeverLowersThem(t *testing.T) {
	const base = `module example.com/harbour

go 1.26.0

require (
	example.net/lowered v1.5.0
	example.net/raised v1.0.0
	example.net/same v1.0.0
	example.net/unused v1.0.0
)

require (
	example.net/indirect v1.0.0 // indirect
	example.net/promoted v1.0.0 // indirect
	example.net/tidied v1.0.0 // indirect
)
`
	const theirs = `module example.com/harbour

go 1.27.0

require (
	example.net/lowered v1.4.0
	example.net/new v1.0.0
	example.net/raised v1.1.0
	example.net/same v1.0.0
)

require (
	example.net/indirect v1.1.0 // indirect
	example.net/later v1.0.0 // indirect
	example.net/promoted v1.1.0 // indirect
	example.net/tidied v1.1.0 // indirect
)
`
	const ours = `module example.com/harbour

go 1.26.3

require (
	example.net/lowered v1.5.0
	example.net/mine v0.1.0 // the crew needs it
	example.net/promoted v1.0.0
	example.net/raised v1.2.0-rc.1
	example.net/same v1.3.0
	example.net/unused v1.0.0
)

require (
	example.net/indirect v1.0.0 // indirect
)

replace example.net/mine => ../mine
`
	const want = `module example.com/harbour

go 1.27.0

require (
	example.net/lowered v1.4.0
	example.net/mine v0.1.0 // the crew needs it
	example.net/promoted v1.1.0
	example.net/raised v1.2.0-rc.1
	example.net/same v1.3.0
	example.net/unused v1.0.0
)

require example.net/new v1.0.0

require (
	example.net/indirect v1.1.0 // indirect
	example.net/later v1.0.0 // indirect
)

replace example.net/mine => ../mine
`
	merged, conflicts := Update("go.mod", []byte(base), []byte(ours), []byte(theirs))
	if diff := cmp.Diff(want, string(merged)); diff != "" || len(conflicts) > 0 {
		t.Errorf("%v\n%s", conflicts, diff)
	}
	again, conflicts := Update("go.mod", []byte(base), merged, []byte(theirs))
	if diff := cmp.Diff(want, string(again)); diff != "" || len(conflicts) > 0 {
		t.Errorf("the second time: %v\n%s", conflicts, diff)
	}
}

func TestAnUpdateOfGoModMergesOtherPartsByLines(t *testing.T) {
	const base = "module a.example/b\n\ngo 1.26.0\n\nrequire a.example/c v1.0.0\n"
	const theirs = "module a.example/b\n\ngo 1.26.0\n\nrequire a.example/c v1.1.0\n\ntool a.example/c/tool\n"
	merged, conflicts := Update("go.mod", []byte(base), []byte(strings.Replace(base, "v1.0.0", "v1.2.0", 1)), []byte(theirs))
	if len(conflicts) != 1 || strings.Contains(string(merged), "v1.1.0") {
		t.Errorf("merged %s with %v", merged, conflicts)
	}
}

func TestAnUpdateOfGoSumAddsLinesInTheOrderOfTheGoCommand(t *testing.T) {
	const base = "b.example/x v1.9.0 h1:a=\nb.example/x v1.9.0/go.mod h1:b=\nc.example/gone v1.0.0 h1:c=\n"
	const theirs = "b.example/x v1.10.0 h1:d=\nb.example/x v1.10.0/go.mod h1:e=\nc.example/gone v1.0.0 h1:c=\n"
	const ours = "a.example/mine v1.0.0 h1:f=\nb.example/x v1.9.0 h1:a=\nb.example/x v1.9.0/go.mod h1:b=\nb.example/x v1.11.0 h1:g="
	const want = "a.example/mine v1.0.0 h1:f=\nb.example/x v1.9.0 h1:a=\nb.example/x v1.9.0/go.mod h1:b=\n" +
		"b.example/x v1.10.0 h1:d=\nb.example/x v1.10.0/go.mod h1:e=\nb.example/x v1.11.0 h1:g=\n"
	merged, conflicts := Update("go.sum", []byte(base), []byte(ours), []byte(theirs))
	if diff := cmp.Diff(want, string(merged)); diff != "" || len(conflicts) > 0 {
		t.Errorf("%v\n%s", conflicts, diff)
	}
}

// The changes of these files are in neighboring lines.
func TestAnUpdateCombinesNeighbouringChanges(t *testing.T) {
	const source = "package main\n\nimport (\n\t\"os\"\n)\n\nfunc main() {\n\tone()\n\ttwo()\n\tos.Exit(1)\n}\n"
	for name, c := range map[string]struct{ file, base, ours, theirs, want string }{
		"imports and statements": {
			"main.go", source,
			strings.NewReplacer("\t\"os\"\n", "\t\"log\"\n\t\"os\"\n", "\ttwo()\n", "\ttwo()\n\tlog.Print(3)\n").Replace(source),
			strings.NewReplacer("\t\"os\"\n", "\t\"fmt\"\n\t\"os\"\n", "\ttwo()\n", "\tfmt.Print(2)\n").Replace(source),
			strings.NewReplacer("\t\"os\"\n", "\t\"fmt\"\n\t\"log\"\n\t\"os\"\n", "\ttwo()\n", "\tfmt.Print(2)\n\tlog.Print(3)\n").Replace(source),
		},
		"items": {"kustomization.yaml", "resources:\n- a\n- b\n", "resources:\n- a\n- b\n- mine\n", "resources:\n- a\n- c\n", "resources:\n- a\n- mine\n- c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			merged, conflicts := Update(c.file, []byte(c.base), []byte(c.ours), []byte(c.theirs))
			if diff := cmp.Diff(c.want, string(merged)); diff != "" || len(conflicts) > 0 {
				t.Errorf("%v\n%s", conflicts, diff)
			}
		})
	}
}

func TestAnUpdateOfAnEditedPartIsAConflictAndThePartStays(t *testing.T) {
	const source = "package main\n\nfunc main() {\n\tone()\n\ttwo()\n}\n"
	const helper = "\nfunc help() {\n\tone()\n}\n"
	replaced := func(text, old, new string) string { return strings.Replace(text, old, new, 1) }
	for name, c := range map[string]struct{ file, base, ours, theirs string }{
		"a statement":          {"main.go", source, replaced(source, "two()", "two(2)"), replaced(source, "two()", "two(3)")},
		"a removed statement":  {"main.go", source, replaced(source, "\ttwo()\n", ""), replaced(source, "two()", "two(3)")},
		"a comment":            {"main.go", source, replaced(source, "\ttwo()", "\t// Mine.\n\ttwo()"), replaced(source, "two()", "two(3)")},
		"a removed function":   {"main.go", source + helper, replaced(source+helper, "help() {\n\tone()", "help() {\n\tmine()"), source},
		"an item":              {"kustomization.yaml", "patches:\n- path: a\n", "patches:\n- path: a\n  options: {}\n", "patches:\n- path: a\n  target: {}\n"},
		"a comment of an item": {"kustomization.yaml", "resources:\n- a\n", "resources:\n- a\n- mine\n", "resources:\n- a # Why.\n- b\n"},
		"a value":              {"a.yaml", "a: 1\n", "a: 2\n", "a: 3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			merged, conflicts := Update(c.file, []byte(c.base), []byte(c.ours), []byte(c.theirs))
			if len(conflicts) == 0 || string(merged) != c.ours {
				t.Errorf("%v, merged\n%s", conflicts, merged)
			}
		})
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add("go.mod", "module a.b/c\n", "module a.b/c\nrequire a.b/d v1.0.0\n", "module a.b/c\nrequire a.b/d v1.1.0\n")
	f.Add("go.sum", "", "a v1 h1:=\n", "b v1 h1:=\nb\n")
	f.Add("main.go", "package a\n", "package a\nvar x = 1\n", "package a\nvar y = 1\n")
	f.Fuzz(func(t *testing.T, name, base, ours, theirs string) {
		merged, conflicts := Update(name, []byte(base), []byte(ours), []byte(theirs))
		if base == theirs && (string(merged) != ours || len(conflicts) > 0) {
			t.Errorf("without a difference, the file has become %q with %v", merged, conflicts)
		}
	})
}
