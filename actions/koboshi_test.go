package actions

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/report"
)

// The steps find a koboshi on their PATH that is this test program. A real check takes minutes, so the
// result of `koboshi check` comes from a file; but it is written, and reports of shards are merged, by
// the code of the real program.

// resultVariable names the file with the result of a check, or holds a number, with which koboshi exits
// without a report. argumentsVariable names the file to which the arguments are written.
const (
	resultVariable    = "KOBOSHI_TEST_RESULT"
	argumentsVariable = "KOBOSHI_TEST_ARGUMENTS"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "koboshi" {
		os.Exit(koboshi(os.Args[1:], os.Stdout))
	}
	os.Exit(m.Run())
}

// koboshi imitates the program, and returns the exit code.
func koboshi(args []string, out io.Writer) int {
	if err := os.WriteFile(os.Getenv(argumentsVariable), []byte(strings.Join(args, "\n")), 0o600); err != nil {
		return failed(out, err)
	}
	files, merging := args[1:], len(args) > 1 && args[1] == "report"
	var parts []string
	if merging {
		files = args[2:]
	} else if code, err := strconv.Atoi(os.Getenv(resultVariable)); err == nil {
		_, _ = fmt.Fprintln(out, "koboshi: could not check: the controller does not start")
		return code
	} else {
		parts = []string{os.Getenv(resultVariable)}
	}
	outputs := map[string]string{}
	for i := 0; i < len(files); i++ {
		if files[i] == "-o" {
			i++
			form, file, _ := strings.Cut(files[i], "=")
			outputs[form] = file
		} else if merging {
			parts = append(parts, files[i])
		}
	}
	r, err := merged(parts)
	if err != nil {
		return failed(out, err)
	}
	if err := r.WriteText(out, report.TextOptions{Width: 80}); err != nil {
		return failed(out, err)
	}
	for form, file := range outputs {
		if err := write(r, form, file); err != nil {
			return failed(out, err)
		}
	}
	return r.ExitCode()
}

func failed(out io.Writer, err error) int {
	_, _ = fmt.Fprintln(out, "koboshi:", err)
	return 2
}

func merged(files []string) (*report.Report, error) {
	var parts []*report.Report
	for _, file := range files {
		part, err := report.ReadFile(file)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return report.Merge(parts)
}

func write(r *report.Report, form, file string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
	}()
	switch form {
	case "json":
		return r.WriteJSON(f)
	case "sarif":
		return r.WriteSARIF(f, report.SARIFOptions{})
	case "codequality":
		return r.WriteCodeQuality(f, report.SARIFOptions{})
	case "junit":
		return r.WriteJUnit(f)
	case "markdown":
		return r.WriteMarkdown(f, report.MarkdownOptions{Whole: "The whole report is in check.html."})
	case "html":
		return r.WriteHTML(f, nil)
	}
	return fmt.Errorf("unknown format %q", form)
}

// installed returns a folder with a program called koboshi.
func installed(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "koboshi")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// clean returns the report of a check without findings.
func clean() *report.Report {
	return &report.Report{
		Version: report.Version, Subject: "operator", Command: "koboshi check", Seed: 4711, Started: time.Unix(1_800_000_000, 0).UTC(),
		Scenarios: []report.Scenario{{Name: "life", Steps: 3, Writes: 4, File: "check/life.yaml"}},
		Tried:     []report.Tried{{Kind: fault.KillAfter, Planned: 4, Runs: 4, Clean: 4}},
		Runs:      7, References: 3, Sources: report.Sources{Main: "cmd/main.go:12"},
	}
}

// found returns the report of a check with n findings, each with a long sentence.
func found(n int) *report.Report {
	r := clean()
	for i := range n {
		r.Findings = append(r.Findings, judge.Finding{
			ID: fmt.Sprintf("id-%d", i), Verdict: judge.Leak, Scenario: "life", Step: "delete", Reproduced: 3, Attempts: 3,
			Sentence: fmt.Sprintf("ConfigMap default/owned-%d remains after the deletion. %s", i, strings.Repeat("é", 300)),
			Fault:    &fault.Fault{Kind: fault.KillAfter, Point: fault.Point{Step: "delete", Verb: "delete", Resource: "configmaps", Object: "default/owned", Occurrence: 1}},
		})
	}
	return r
}

// part returns the report of one of two shards.
func part(r *report.Report, number int) *report.Report {
	r.Shard, r.WholePlan = fmt.Sprintf("%d/2", number), 8
	return r
}

// saved writes a report to a file.
func saved(t *testing.T, r *report.Report, file string) string {
	t.Helper()
	if err := write(r, "json", file); err != nil {
		t.Fatal(err)
	}
	return file
}

// argumentsOf returns the arguments with which koboshi was called last.
func argumentsOf(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("koboshi was not called: %v", err)
	}
	return strings.Split(string(data), "\n")
}

// without removes -o and its values.
func without(args []string) []string {
	for {
		i := slices.Index(args, "-o")
		if i < 0 {
			return args
		}
		args = slices.Delete(slices.Clone(args), i, i+2)
	}
}
