package makefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func read(t *testing.T, text string, environment ...string) *File {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Read(dir, environment)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestVariablesHaveTheValuesThatMakeGivesThem(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ makefile, want string }{
		"recursive":                   {"A = $(B) c\nB = b", "b c"},
		"simple":                      {"B = b\nA := $(B) c\nB = x", "b c"},
		"conditional":                 {"A ?= a\nA ?= b", "a"},
		"conditional in env":          {"ENV ?= a\nA = $(ENV)", "from env"},
		"assigned in spite of env":    {"ENV = a\nA = $(ENV)", "a"},
		"appended":                    {"A = $(B)\nA += c\nB = b", "b c"},
		"appended to simple":          {"B = b\nA := x\nA += $(B)\nB = y", "x b"},
		"appended to nothing":         {"A += c", "c"},
		"undefined":                   {"A = x$(NOTHING)y", "xy"},
		"brackets":                    {"B = b\nA = ${B} $(B)", "b b"},
		"one letter":                  {"B = b\nA = $B", "b"},
		"dollar":                      {"A = $$HOME", "$HOME"},
		"name in a variable":          {"N = B\nB_x = b\nA = $($(N)_x)", "b"},
		"continued":                   {"A = a \\\n    b \\\n\tc", "a b c"},
		"comment":                     {"A = a # comment", "a"},
		"exported":                    {"export A := a", "a"},
		"define":                      {"define A\nx\ny\nendef", "x\ny"},
		"ifeq":                        {"B = 1\nifeq ($(B),1)\nA = yes\nelse\nA = no\nendif", "yes"},
		"ifneq with quotes":           {"B = 1\nifneq \"$(B)\" \"1\"\nA = yes\nelse\nA = no\nendif", "no"},
		"else if":                     {"B = 2\nifeq ($(B),1)\nA = 1\nelse ifeq ($(B),2)\nA = 2\nelse\nA = 3\nendif", "2"},
		"ifdef":                       {"ifdef B\nA = yes\nelse\nA = no\nendif", "no"},
		"ifndef":                      {"ifndef B\nA = yes\nendif", "yes"},
		"nested":                      {"ifdef B\nifdef B\nendif\nA = no\nelse\nA = yes\nendif", "yes"},
		"unknown condition elsewhere": {"ifeq ($(shell uname),x)\nB = 1\nendif\nA = a", "a"},
		"year":                        {"A = $(shell date +%Y)", time.Now().Format("2006")},
		"dirname":                     {"A = $(shell dirname /a/b)", "/a"},
		"strip":                       {"A = $(strip  a   b )", "a b"},
		"subst":                       {"A = $(subst a,b,a c a)", "b c b"},
		"patsubst":                    {"A = $(patsubst %.c,%.o,x.c y)", "x.o y"},
		"substitution":                {"B = x.c y.c\nA = $(B:.c=.o) $(B:%.c=%)", "x.o y.o x y"},
		"addprefix":                   {"A = $(addprefix paths=,./a ./b)", "paths=./a paths=./b"},
		"addsuffix":                   {"A = $(addsuffix /...,a b)", "a/... b/..."},
		"foreach":                     {"A = $(foreach x,a b,$(x)$(x))", "aa bb"},
		"call":                        {"f = $(2)-$(1)\nA = $(call f,a,b)", "b-a"},
		"if":                          {"A = $(if $(B),x,y) $(if a,x,y)", "y x"},
		"or and and":                  {"A = $(or ,a,b) $(and a,b) $(and a,)", "a b "},
		"filter":                      {"A = $(filter a%,ab b) $(filter-out a%,ab b)", "ab b"},
		"words":                       {"A = $(firstword a b) $(lastword a b) $(word 2,a b) $(words a b)", "a b b 2"},
		"paths":                       {"A = $(dir a/b) $(notdir a/b) $(basename b.c) $(abspath /a/../b)", "a/ b b /b"},
		"sort":                        {"A = $(sort b a b)", "a b"},
		"wildcard":                    {"A = $(wildcard M*file ./M*) $(wildcard x*)", "Makefile ./Makefile "},
		"findstring":                  {"A = $(findstring a,bab)", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := read(t, test.makefile+"\n", "ENV=from env", "HOME=/home")
			if got, err := f.Variable("A"); err != nil || got != test.want {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestTheFolderIsKnown(t *testing.T) {
	t.Parallel()
	f := read(t, "A = $(CURDIR)|$(shell pwd)|$(PWD)|$(shell dirname $(abspath $(lastword $(MAKEFILE_LIST))))\n", "PWD=/elsewhere")
	if got, err := f.Variable("A"); err != nil || got != strings.Join([]string{f.Dir, f.Dir, f.Dir, f.Dir}, "|") {
		t.Errorf("%q, %v, want %s", got, err, f.Dir)
	}
}

func TestWhatOnlyACommandKnowsIsAnError(t *testing.T) {
	t.Parallel()
	for makefile, want := range map[string]string{
		"A = $(shell git describe)":  "koboshi does not run $(shell git describe)",
		"A := $(shell git describe)": "koboshi does not run $(shell git describe)",
		"A != git describe":          "koboshi does not run $(shell git describe)",
		"A = $(eval B = c)":          "koboshi does not evaluate $(eval ...)",
		"A = $(A)":                   "too deeply",
		"A = $<":                     "koboshi does not evaluate $<",
		"ifeq ($(shell uname),x)\nA = 1\nelse\nA = 2\nendif": "A depends on a condition (Makefile:4)",
		"B0 = xxxxxxxxxxxxxxxx\nB1 = $(B0)$(B0)$(B0)$(B0)$(B0)$(B0)$(B0)$(B0)\nB2 = $(B1)$(B1)$(B1)$(B1)$(B1)$(B1)$(B1)$(B1)\n" +
			"B3 = $(B2)$(B2)$(B2)$(B2)$(B2)$(B2)$(B2)$(B2)\nB4 = $(B3)$(B3)$(B3)$(B3)$(B3)$(B3)$(B3)$(B3)\nA = $(B4)$(B4)$(B4)$(B4)": "too long",
	} {
		if got, err := read(t, makefile+"\n").Variable("A"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want %q", makefile, got, err, want)
		}
	}
}

func TestRulesAreReachedInTheOrderInWhichMakeRunsThem(t *testing.T) {
	t.Parallel()
	f := read(t, `
LIST = c d
all: a b | $(LIST)
a: A = special
a: b ; first $(A)
	second $@ \
	  continued

	third
b c::
	bc
d: ; d
other:
	other
%.o: %.c
	cc
x y: %: z
`)
	var got []string
	for _, rule := range f.Reached("all", "a") {
		for _, line := range rule.Recipe {
			text, err := f.Expand(line.Text, rule)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, line.String()+" "+strings.ReplaceAll(text, "\n", "|"))
		}
	}
	want := []string{
		"Makefile:11 bc", "Makefile:5 first ", "Makefile:6 second a \\|\t  continued", "Makefile:9 third", "Makefile:12 d",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !f.Has("other") || f.Has("nothing") {
		t.Error("Has is wrong")
	}
}

func TestAFolderWithoutAMakefileHasNone(t *testing.T) {
	t.Parallel()
	if f, err := Read(t.TempDir(), nil); f != nil || err != nil {
		t.Errorf("%v, %v", f, err)
	}
}

func TestAFileThatIncludesItselfIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte("include Makefile\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir, nil); err == nil || !strings.Contains(err.Error(), "does a file include itself?") {
		t.Errorf("%v", err)
	}
}

func TestALineIsSplitAsAShellSplitsIt(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]Command{
		`@a "b c" 'd"e' f\ g`:      {{Args: []string{"a", "b c", `d"e`, "f g"}}},
		`a x="y z",'w'`:            {{Args: []string{"a", "x=y z,w"}}},
		`A=1 B="2 3" c D=4`:        {{Env: []string{"A=1", "B=2 3"}, Args: []string{"c", "D=4"}}},
		`a && b || c; d & e`:       {{Args: []string{"a"}}, {Args: []string{"b"}}, {Args: []string{"c"}}, {Args: []string{"d"}}, {Args: []string{"e"}}},
		`a | b`:                    {{Args: []string{"a"}, Redirected: true}, {Args: []string{"b"}}},
		`a > x 2>&1 b`:             {{Args: []string{"a", "b"}, Redirected: true}},
		`a 2>/dev/null`:            {{Args: []string{"a"}}},
		`a $HOME`:                  {{Args: []string{"a", "$HOME"}, Dynamic: true}},
		`a '$HOME' # comment`:      {{Args: []string{"a", "$HOME"}}},
		"a `b`":                    {{Args: []string{"a", "`b`"}, Dynamic: true}},
		`if a; then b; fi; c`:      {{Args: []string{"a"}, Dynamic: true}, {Args: []string{"b"}, Dynamic: true}, {Args: []string{"c"}}},
		`for x in a b; do c; done`: {{Args: []string{"for", "x", "in", "a", "b"}, Dynamic: true}, {Args: []string{"c"}, Dynamic: true}},
		`(cd a; b)`:                {{Args: []string{"cd", "a"}}, {Args: []string{"b"}}},
		"a b \\\n\tc":              {{Args: []string{"a", "b", "c"}}},
		`a {b,c}`:                  {{Args: []string{"a", "{b,c}"}}},
		`-@a`:                      {{Args: []string{"a"}}},
		``:                         nil,
	} {
		got, err := Split(line)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", line, err, diff)
		}
	}
	if _, err := Split(`a "b`); err == nil {
		t.Error("an open quotation mark is not an error")
	}
}

// FuzzMakefile checks that no Makefile makes the reader panic or run for a long time.
func FuzzMakefile(f *testing.F) {
	f.Add("A ?= $(shell pwd)\nmanifests: $(A) ; @x $(A:.c=.o) \\\n\ty\n")
	f.Add("define a\nifeq (a,b)\nendef\nifdef A\nelse ifneq 'a' 'b'\nendif\nelse\nendif\n")
	f.Add("A=$(call A,$(foreach A,$A $A,${A}${A}))\nA+=$(A)\nA::=$(A)\n\t$(A)\n")
	f.Add("a b:: c: d | e\n\tfor x in `y`; do \"$$z\" 2>&1 | w; done\nexport B := $(subst a,aa,aaa)\n$(\n${(}")
	f.Fuzz(func(t *testing.T, text string) {
		file := newFile(t.TempDir(), []string{"A=b"})
		if err := file.parse("Makefile", text); err != nil {
			return
		}
		for _, rule := range append(file.Reached("manifests", "a"), file.Rules...) {
			for _, line := range rule.Recipe {
				if expanded, err := file.Expand(line.Text, rule); err == nil {
					_, _ = Split(expanded)
				}
			}
		}
		_, _ = file.Variable("A")
	})
}
