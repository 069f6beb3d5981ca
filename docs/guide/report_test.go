package guide

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// update rewrites the block of the page instead of comparing it:
//
//	go test ./docs/guide -run TestTheReportPageShowsWhatTheProgramPrints -update
var update = flag.Bool("update", false, "rewrite the generated block of check/report.md")

const (
	reportPage = "check/report.md"
	// oneCheck limits the duration of one koboshi check on a small controller.
	oneCheck = 5 * time.Minute
	// mostChecks limits how often the check is repeated if the machine is too busy to
	// judge every fault.
	mostChecks = 3
)

func TestTheReportPageShowsWhatTheProgramPrints(t *testing.T) {
	t.Parallel()
	koboshi := built(t)
	data, err := os.ReadFile(reportPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(data), "```text\n")
	shown, after, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatalf("%s has no block of text", reportPage)
	}
	printed := printedReport(t, koboshi)
	if masked(printed) == masked(shown) {
		return
	}
	if *update {
		page := before + "```text\n" + printed + "```\n" + after
		if err := os.WriteFile(reportPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s shows\n%s\nbut the program prints\n%s\nRun this test with -update to rewrite the page.", reportPage, shown, printed)
}

// The excerpts on other pages must match the report page, so that they cannot become
// outdated.
func TestExcerptsOfTheReportShowWhatTheReportPageShows(t *testing.T) {
	t.Parallel()
	whole := reportIn(t, reportPage)
	for _, page := range []string{"check/README.md", "../../README.md", "../../README.ja.md"} {
		for line := range strings.Lines(reportIn(t, page)) {
			if line != "\n" && !strings.Contains(whole, line) {
				t.Errorf("%s shows a line that is not in %s: %s", page, reportPage, line)
			}
		}
	}
}

// reportIn returns the masked block of a page that contains the first finding.
func reportIn(t *testing.T, page string) string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	block := finding.FindSubmatch(data)
	if block == nil {
		t.Fatalf("%s shows no finding", page)
	}
	return masked(string(block[1]))
}

// finding matches a block of text that contains a finding.
var finding = regexp.MustCompile("```[a-z]*\n([^`]*1\\. DIVERGED [^`]*)```")

// printedReport runs koboshi check on the bug b1-first-exists of the track record, and
// returns the report up to the end of its table.
func printedReport(t *testing.T, koboshi string) string {
	t.Helper()
	folder := t.TempDir()
	bugs := filepath.Join(folder, "bugs")
	build := exec.Command("go", "build", "-o", bugs, ".")
	build.Dir = filepath.Join("..", "..", "bugs")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the controllers: %v\n%s", err, out)
	}
	b1, err := filepath.Abs(filepath.Join(build.Dir, "b1-first-exists"))
	if err != nil {
		t.Fatal(err)
	}
	for range mostChecks {
		ctx, cancel := context.WithTimeout(t.Context(), oneCheck)
		defer cancel()
		check := exec.CommandContext(ctx, koboshi, "check", "--profile", "gc",
			"--crds", filepath.Join(b1, "crd.yaml"), "--scenario", filepath.Join(b1, "scenario.yaml"),
			"--faults", "kill-lost,conflict", "--seed", "42", "--workers", "1",
			"--horizon", "0", // the report of a watched rest depends on the speed of the machine
			"--", bugs, "b1")
		check.Dir = t.TempDir() // findings of an earlier check would go first
		check.Cancel = func() error { return check.Process.Signal(os.Interrupt) }
		var errs strings.Builder
		check.Stderr = &errs
		out, err := check.Output()
		switch code := check.ProcessState.ExitCode(); {
		case code == 1:
		case (code == 0 || code == 2) && ctx.Err() == nil:
			t.Logf("koboshi check: exit code %d, want 1\n%s%s", code, out, errs.String())
			continue
		default:
			t.Fatalf("koboshi check: %v, want exit code 1\n%s%s", err, out, errs.String())
		}
		end := lastRow.FindIndex(out)
		if end == nil {
			t.Fatalf("the report has no table:\n%s", out)
		}
		report, more := string(out[:end[1]]), strings.TrimSpace(string(out[end[1]:]))
		if more == "" {
			return report + "\n"
		}
		t.Logf("not every fault could be judged:\n%s", more)
	}
	t.Fatalf("none of %d checks found the bug and judged every fault", mostChecks)
	return ""
}

// lastRow matches the last row of the table. Below the table, a report lists the faults
// that could not be applied or judged; the report of this test should list none.
var lastRow = regexp.MustCompile(`(?m)^  all .*$`)

// variable matches everything that differs between two checks: durations, keyed hashes, the IDs of
// findings, and the numbers of runs.
var variable = []struct {
	pattern *regexp.Regexp
	mask    string
}{
	{regexp.MustCompile(`\(([0-9.]+ (h|min|s) ?)+\)`), "(DURATION)"},
	{regexp.MustCompile(`hmac:[0-9a-f]{16}`), "hmac:HASH"},
	{regexp.MustCompile(`-[0-9a-f]{12}\.json`), "-ID.json"},
	{regexp.MustCompile(`[0-9]+ runs`), "N runs"},
	{regexp.MustCompile(`[0-9]+ to confirm`), "N to confirm"},
	{regexp.MustCompile(`not within ([0-9.]+ (h|min|s) ?)+`), "not within DURATION "},
	{regexp.MustCompile(`reproduced 3 of [0-9]`), "reproduced 3 of N"},
	{regexp.MustCompile(`(?m)^(  [a-z-]+) +[-0-9 ]+$`), "$1 NUMBERS"}, // a row of the table
}

func masked(report string) string {
	for _, v := range variable {
		report = v.pattern.ReplaceAllString(report, v.mask)
	}
	return report
}
