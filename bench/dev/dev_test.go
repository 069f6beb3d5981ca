package main

import (
	"bytes"
	"context"
	"errors"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// root is the folder of the root module.
const root = "../.."

func TestTheOperatorPrintsWhichEditsItContains(t *testing.T) {
	p, err := copyOperator(root, t.TempDir(), "one")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range []edit{editBody, editBody, editType, editBody, editType} {
		before := contents(t, p)
		if err := p.save(e); err != nil {
			t.Fatal(err)
		}
		after := contents(t, p)
		if body, types := before[0] != after[0], before[1] != after[1]; body != (e == editBody) || types != (e == editType) {
			t.Errorf("an edit of the %s changes the controller: %v, the types: %v", e, body, types)
		}
		if got := printed(t, after); got != p.marker() {
			t.Errorf("the code prints %q, but the loop waits for %q", got, p.marker())
		}
		if seen[p.marker()] {
			t.Errorf("the marker %q is used twice", p.marker())
		}
		seen[p.marker()] = true
		for _, source := range after {
			formatted, err := format.Source([]byte(source))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(formatted), source); diff != "" {
				t.Errorf("go fmt would change an edited file:\n%s", diff)
			}
		}
	}
	if types := contents(t, p)[1]; !strings.Contains(types, "BenchField1 ") || !strings.Contains(types, "BenchField2 ") {
		t.Error("two edits of the type did not add two fields")
	}
}

// Equal edits would give both loops packages with equal contents, and the go command would compile
// such packages only once.
func TestLoopsWithDifferentNamesMakeDifferentEdits(t *testing.T) {
	one, err := copyOperator(root, t.TempDir(), "one")
	if err != nil {
		t.Fatal(err)
	}
	other, err := copyOperator(root, t.TempDir(), "other")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for i, source := range contents(t, one) {
			if source == contents(t, other)[i] {
				t.Errorf("both loops have the same file:\n%s", source)
			}
		}
		for _, e := range edits {
			if err := errors.Join(one.save(e), other.save(e)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// contents returns the edited files.
func contents(t *testing.T, p *project) (files [2]string) {
	t.Helper()
	for i, name := range []string{controllerFile, typesFile} {
		data, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[i] = string(data)
	}
	return files
}

// printed returns what Reconcile prints.
func printed(t *testing.T, files [2]string) (text string) {
	t.Helper()
	for i, pattern := range []string{
		`(?s)\) Reconcile\(ctx [^\n]*\{\n\tprintln\("([^"]*)" \+ storagev1\.BenchType\)\n`,
		`\nconst BenchType = "([^"]*)"\n`,
	} {
		found := regexp.MustCompile(pattern).FindStringSubmatch(files[i])
		if found == nil {
			t.Fatalf("%s does not match:\n%s", pattern, files[i])
		}
		text += found[1]
	}
	return text
}

func TestAnOperatorThatHasChangedIsAnError(t *testing.T) {
	if got, err := withBody("package controller\n", "body"); err == nil {
		t.Errorf("without Reconcile, the edited code is %q", got)
	}
	if _, err := withFields("package v1\n", 1, "type"); err == nil {
		t.Error("fields were added to no type")
	}
}

func TestTheLineOfARoundIsParsed(t *testing.T) {
	for text, want := range map[string]devRound{
		"koboshi: internal/controller/bucket.go: build 1.84 s, restart 0.21 s; 2.05 s in all": {
			stages: []stage{{"build", 1.84}, {"restart", 0.21}},
		},
		"koboshi: a.go, b: c.go and 3 more: generate 0.80 s, build 11.00 s, apply 0.10 s, restart 0.20 s; 12.10 s in all": {
			stages: []stage{{"generate", 0.8}, {"build", 11}, {"apply", 0.1}, {"restart", 0.2}},
		},
		"koboshi: a.go: restart 0.30 s":                             {stages: []stage{{"restart", 0.3}}},
		"koboshi: a.go: build 1.00 s and failed":                    {stages: []stage{{"build", 1}}, failed: true},
		"koboshi: a.go: build 1.00 s until the files changed again": {stages: []stage{{"build", 1}}},
	} {
		got, ok := parseRound(text)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(devRound{})); !ok || diff != "" {
			t.Errorf("%s: %v\n%s", text, ok, diff)
		}
	}
	for _, text := range []string{
		"koboshi: building storagebucket", "a.go: build 1.00 s",
		"koboshi: Kubernetes v1.37.0 is ready at https://127.0.0.1:1 after 2.9 s (profile gc, because no role allows it)",
	} {
		if got, ok := parseRound(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

// script starts a shell script that acts as a program of the benchmark.
func script(t *testing.T, text string) *program {
	t.Helper()
	p, err := launch("the script", exec.Command("sh", "-c", text))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p
}

func TestATurnIncludesTheRoundsThatAnotherEditEnded(t *testing.T) {
	k := &koboshi{project: &project{name: "one", bodies: 2}, dev: script(t, `
		echo 'bench: one, body 1, one, type 0.'
		echo 'koboshi: a.go: build 1.00 s until the files changed again' >&2
		echo 'bench: one, body 2, one, type 0.'
		echo 'koboshi: a.go: build 2.00 s, restart 0.50 s; 2.50 s in all' >&2
		exec sleep 60`)}
	at, stages, err := k.reconciled(t.Context(), 0, 0)
	if err != nil || at.IsZero() {
		t.Fatalf("reconciled at %v: %v", at, err)
	}
	if diff := cmp.Diff([]stage{{"build", 1}, {"build", 2}, {"restart", 0.5}}, stages); diff != "" {
		t.Error(diff)
	}
	if got := (turn{Stages: stages}).of(stageBuild); got != 3 {
		t.Errorf("the build took %v s, want 3", got)
	}
}

func TestAFailedRoundEndsTheBenchmarkWithTheOutput(t *testing.T) {
	k := &koboshi{project: &project{name: "one"}, dev: script(t, `
		echo 'bench: one, body 0, one, type 0.'
		echo 'a.go:3: undefined: x' >&2
		echo 'koboshi: a.go: build 1.00 s and failed' >&2
		exec sleep 60`)}
	_, _, err := k.reconciled(t.Context(), 0, 0)
	if err == nil || !strings.Contains(err.Error(), "undefined: x") {
		t.Errorf("got %v", err)
	}
}

func TestAProgramThatEndsOrHangsIsAnErrorWithItsOutput(t *testing.T) {
	wanted := func(text string) bool { return text == "wanted" }
	ended := script(t, "echo reason >&2; exit 3")
	_, _, err := ended.await(t.Context(), ended.out, 0, "a word", wanted)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "reason") {
		t.Errorf("a program that ended: %v", err)
	}
	hangs := script(t, "echo busy; exec sleep 60")
	if _, _, err := hangs.await(t.Context(), hangs.out, 0, "busy", func(text string) bool { return text == "busy" }); err != nil {
		t.Fatal(err)
	}
	late := errors.New("not done within a moment")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, late)
	defer cancel()
	_, _, err = hangs.await(ctx, hangs.out, 0, "a word", wanted)
	if !errors.Is(err, late) || !strings.Contains(err.Error(), "busy") {
		t.Errorf("a program that hangs: %v", err)
	}
}

func TestTheLastLineOfAProgramIsNotLost(t *testing.T) {
	p := script(t, "echo first; echo last")
	<-p.exited
	last, position, err := p.await(t.Context(), p.out, 0, "last", func(text string) bool { return text == "last" })
	if err != nil || position != 1 || last.at.IsZero() {
		t.Errorf("got %+v at position %d: %v", last, position, err)
	}
}

func TestALineIsCompleteOnlyWithItsEnd(t *testing.T) {
	var l lines
	for _, text := range []string{"bench: bo", "dy 1", "\nnext\nunfinished"} {
		if _, err := l.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	all, _ := l.since(0)
	for _, one := range all {
		got = append(got, one.text)
	}
	if diff := cmp.Diff([]string{"bench: body 1", "next"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheTableFitsATerminalAndTellsWhichTargetIsMissed(t *testing.T) {
	turnOf := func(seconds, build float64) turn {
		return turn{seconds, []stage{{"generate", 0.5}, {stageBuild, build}, {stageRestart, 0.1}}}
	}
	var r report
	for _, n := range []float64{1, 3, 2} {
		r.Rounds = append(r.Rounds, round{
			editBody: {ours: turnOf(2*n, n), theirs: turnOf(5*n, n)},
			editType: {ours: turnOf(80*n, n), theirs: turnOf(100*n, 2*n)},
		})
	}
	var out bytes.Buffer
	if err := r.table(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"median (min-max) of 3 rounds",
		"4.00 (2.00-6.00)      10.0 (5.00-15.0)      0.40 (0.40-0.40)",
		"  go build          2.00  50 %            2.00  20 %\n",
		"160 (80.0-240)        200 (100-300)         0.80 (0.80-0.80)",
		"target at most 0.5: met\n", "target at most 0.75: MISSED\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	for text := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(text, "\n")); n > 80 {
			t.Errorf("a line has %d columns: %q", n, text)
		}
	}
}

func TestTheRatioIsThatOfTheMedians(t *testing.T) {
	var r report
	for _, pair := range [][2]float64{{1, 10}, {2, 4}, {9, 10}} {
		r.Rounds = append(r.Rounds, round{editBody: {ours: {Seconds: pair[0]}, theirs: {Seconds: pair[1]}}})
	}
	median, rounds := r.ratio(editBody)
	if median != 0.2 || rounds.Min != 0.1 || rounds.Max != 0.9 {
		t.Errorf("the ratio is %v (%v-%v), want 0.2 (0.1-0.9)", median, rounds.Min, rounds.Max)
	}
}

func TestWrongFlagsAreRefusedBeforeAnythingIsBuilt(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-rounds", "0"}, "at least 1"},
		{[]string{"body"}, `unknown argument "body"`},
		{[]string{"-koboshi", filepath.Join(t.TempDir(), "none")}, "run make build"},
	} {
		if err := run(t.Context(), c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}
