// Package actions tests the GitHub actions and the GitLab template in this folder, without a runner: it
// runs their scripts as the runners do, with a koboshi that has no cluster.
package actions

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var names = []string{"setup", "check"}

// A value that is written into a script could end a quotation and run a command. Titles of pull
// requests and names of branches come from strangers.
func TestNoScriptContainsAnExpression(t *testing.T) {
	for _, name := range names {
		for _, s := range readAction(t, name).Runs.Steps {
			if strings.Contains(s.Run, "${{") {
				t.Errorf("%s: pass the value with env: %s", name, s.Run)
			}
			if s.Run != "" && s.Shell != "bash" {
				t.Errorf("%s: the shell of a script is %q", name, s.Shell)
			}
		}
	}
}

// A tag can be moved to other code, and a commit cannot.
func TestActionsOfOthersArePinnedToACommit(t *testing.T) {
	pinned := regexp.MustCompile(`^uses: [\w.-]+(/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(name, "action.yml"))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "- ")); strings.HasPrefix(line, "uses:") {
				found++
				if !pinned.MatchString(line) {
					t.Errorf("%s: %q does not name a commit and its version", name, line)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s calls no action", name)
		}
	}
}

func TestEveryInputIsDescribedAndUsed(t *testing.T) {
	for _, name := range names {
		a := readAction(t, name)
		data, err := os.ReadFile(filepath.Join(name, "action.yml"))
		if err != nil {
			t.Fatal(err)
		}
		_, runs, _ := strings.Cut(string(data), "\nruns:\n")
		for input, declared := range a.Inputs {
			if declared.Description == "" || !regexp.MustCompile(`\binputs\.`+regexp.QuoteMeta(input)+`\b`).MatchString(runs) {
				t.Errorf("%s: the input %s is not described, or not used", name, input)
			}
		}
		for output, declared := range a.Outputs {
			if declared.Description == "" || declared.Value == "" {
				t.Errorf("%s: the output %s is not complete", name, output)
			}
		}
		if a.Runs.Using != "composite" || a.Name == "" || a.Description == "" {
			t.Errorf("%s is not a composite action with a name and a description", name)
		}
	}
}

func TestThePageDescribesEveryInput(t *testing.T) {
	page, err := os.ReadFile("../docs/guide/check/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for input := range readAction(t, name).Inputs {
			if !strings.Contains(string(page), "| `"+input+"` |") {
				t.Errorf("docs/guide/check/ci.md has no row for the input %s of %s", input, name)
			}
		}
	}
}

// A script that ignores an unset variable or a failed command would report a success.
func TestEveryScriptStopsAtAnError(t *testing.T) {
	scripts, err := filepath.Glob("*/*.sh")
	if err != nil || len(scripts) < 5 {
		t.Fatalf("found %q: %v", scripts, err)
	}
	for _, script := range scripts {
		data, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(data), "\n")
		sourced := strings.HasPrefix(lines[0], "# shellcheck shell=bash")
		if !sourced && (lines[0] != "#!/usr/bin/env bash" || !slices.Contains(lines, "set -euo pipefail")) {
			t.Errorf("%s does not set -euo pipefail", script)
		}
		if out, err := exec.Command("bash", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}
