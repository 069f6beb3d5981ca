package conformance

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// checkReport holds the fields that programs read from a report.
type checkReport struct {
	Findings      []checkFinding
	Remarks       []checkFinding
	Tried         []struct{ Planned, Runs, Clean, Found, NotApplied, Inconclusive int }
	Runs          int
	References    int
	Confirmations int
	LeftToShards  int
	WholePlan     int
	NotApplied    []notRun
	Inconclusive  []notRun
	Settings      []string
	SettingsFile  string
	Notes         []string
}

// notRun is a fault without a result, with the reason.
type notRun struct {
	Fault struct {
		Kind  string
		Point struct{ Verb, Resource, Object, Change string }
	}
	Why string
}

type checkFinding struct {
	ID, Verdict, Scenario, Step, Sentence, Detail, File, Replay string

	Reproduced, Attempts int
	Fault                *struct{ Kind string }
	Differences          []struct{ Object, Path string }
	Silence              *struct{ Add, Wrong string }
}

func readJSON[T any](t *testing.T, path string) (content T) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// onlyFinding returns the only finding of a report in a file.
func onlyFinding(t *testing.T, path string) checkFinding {
	t.Helper()
	r := readJSON[checkReport](t, path)
	if len(r.Findings) != 1 {
		t.Fatalf("%d findings, want 1: %+v", len(r.Findings), r.Findings)
	}
	return r.Findings[0]
}

// planned returns the number of planned runs of all kinds, and checks that every run has
// an outcome.
func (r checkReport) planned(t *testing.T) (n int) {
	t.Helper()
	for _, k := range r.Tried {
		n += k.Planned
		if k.Runs != k.Clean+k.Found+k.NotApplied+k.Inconclusive {
			t.Errorf("of %d runs, %d are clean, %d found something, %d could not be applied, %d are inconclusive",
				k.Runs, k.Clean, k.Found, k.NotApplied, k.Inconclusive)
		}
	}
	return n
}

var (
	foundOnce sync.Once
	found     *checking
)

// token is the value that the scenario secret puts into a Secret and that the controller
// copies.
const token = "given-value-4711"

// planted is a value of --env.
const planted = "env-value-0815"

// foundBug returns a check that has found the bug first-exists and has written its report
// in all formats. The check runs only once, because it takes long to wait for a
// controller that never recovers.
func foundBug(t *testing.T) *checking {
	t.Helper()
	foundOnce.Do(func() {
		checked(t) // creates the folder
		found = check(t, filepath.Join(checkedDir, "found"), 1, ofWidgets(t, "secret.yaml", "--faults=kill-lost", "--verbose",
			"-o=json=report.json", "-o=junit=report.xml", "-o=sarif=report.sarif", "-o=html=report.html", "-o=text",
			"--env=SECRET=source", "--env=BUG=first-exists", "--env=PLANTED="+planted)...)
	})
	if found == nil {
		t.Fatal("the bug was not found; see the first test that needed it")
	}
	return found
}

func TestCheckFindsChildThatIsNeverMadeAfterAKill(t *testing.T) {
	t.Parallel()
	c := foundBug(t)
	f := onlyFinding(t, filepath.Join(c.dir, "report.json"))
	if f.Verdict != "DIVERGED" || f.Fault == nil || f.Fault.Kind != "kill-lost" || f.Step != "create" {
		t.Errorf("it found %+v", f)
	}
	if f.Reproduced != 3 || f.Attempts > 5 {
		t.Errorf("reproduced %d of %d, want 3 of at most 5", f.Reproduced, f.Attempts)
	}
	if len(f.Differences) != 1 || f.Differences[0].Object != "Secret default/demo-second" || f.Differences[0].Path != "" {
		t.Errorf("the differences are %v", f.Differences)
	}
	for _, part := range []string{"killed after POST secrets default/demo-first", "Secret default/demo-second is missing"} {
		if !strings.Contains(f.Sentence, part) {
			t.Errorf("the sentence is %q, without %q", f.Sentence, part)
		}
	}
	text := c.stdout.String()
	for _, part := range []string{"1 finding in", "DIVERGED", "reproduced 3 of ", "replay       koboshi check replay " + f.File} {
		if !strings.Contains(text, part) {
			t.Errorf("the text does not say %q:\n%s", part, text)
		}
	}
	if _, err := os.Stat(filepath.Join(c.dir, f.File)); err != nil {
		t.Errorf("the finding's file: %v", err)
	}
}

func TestReplayedFindingShowsAgain(t *testing.T) {
	t.Parallel()
	c := foundBug(t)
	was := onlyFinding(t, filepath.Join(c.dir, "report.json"))
	check(t, c.dir, 1, "replay", was.File, "-o=json=again.json", "--env=SECRET=source", "--env=BUG=first-exists", "--env=PLANTED="+planted)
	if is := onlyFinding(t, filepath.Join(c.dir, "again.json")); is.ID != was.ID || is.Reproduced != 3 || is.File != was.File {
		t.Errorf("it found %+v, and first %+v", is, was)
	}
}

func TestReplayOfARepairedControllerIsClean(t *testing.T) {
	t.Parallel()
	c := foundBug(t)
	was := onlyFinding(t, filepath.Join(c.dir, "report.json"))
	replay := checkIn(t, c.dir, "replay", was.File, "-o=json=repaired-report.json")
	replay.cmd.Env = append(os.Environ(), "SECRET=source", "BUG=", "PLANTED="+planted)
	replay.start(t)
	replay.end(t, 0)
	r := readJSON[checkReport](t, filepath.Join(c.dir, "repaired-report.json"))
	if len(r.Findings) != 0 || r.planned(t) != 1 || len(r.Tried) != 1 || r.Tried[0].Clean != 1 {
		t.Errorf("the report is %+v; one fault ought to have been applied, and nothing found", r)
	}
}

func TestReportsInAllFormsTellOfTheSameFinding(t *testing.T) {
	t.Parallel()
	c := foundBug(t)
	f := onlyFinding(t, filepath.Join(c.dir, "report.json"))

	var junit struct {
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Cases []struct {
				Failures []struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	data, err := os.ReadFile(filepath.Join(c.dir, "report.xml"))
	if err == nil {
		err = xml.Unmarshal(data, &junit)
	}
	if err != nil {
		t.Fatal(err)
	}
	failures := 0
	for _, suite := range junit.Suites {
		for _, test := range suite.Cases {
			failures += len(test.Failures)
		}
	}
	if failures != 1 || !strings.Contains(string(data), f.Verdict) {
		t.Errorf("JUnit has %d failures:\n%s", failures, data)
	}

	sarif := readJSON[struct {
		Version string
		Runs    []struct{ Results []struct{ RuleID string } }
	}](t, filepath.Join(c.dir, "report.sarif"))
	if sarif.Version != "2.1.0" || len(sarif.Runs) != 1 || len(sarif.Runs[0].Results) != 1 {
		t.Errorf("SARIF is %+v", sarif)
	}

	page, err := os.ReadFile(filepath.Join(c.dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"<!doctype html>", f.Verdict, "demo-second"} {
		if !strings.Contains(strings.ToLower(string(page)), strings.ToLower(part)) {
			t.Errorf("the page does not hold %q", part)
		}
	}
	for _, outside := range []string{"src=\"http", "href=\"http", "@import", "url(http"} {
		if strings.Contains(string(page), outside) {
			t.Errorf("the page needs something from outside: %s", outside)
		}
	}
}

func TestNothingThatCheckWritesHoldsASecret(t *testing.T) {
	t.Parallel()
	c := foundBug(t)
	f := onlyFinding(t, filepath.Join(c.dir, "report.json"))
	written := map[string]string{"standard output": c.stdout.String(), "standard error": c.stderr.String()}
	traces := 0
	err := filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			var data []byte
			data, err = os.ReadFile(path)
			name, _ := filepath.Rel(c.dir, path)
			written[name] = string(data)
			if entry.Name() == f.ID+".trace.jsonl" {
				traces++
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a replay in this folder has removed its temporary file
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if traces != 1 {
		t.Errorf("there are %d traces of the finding, want 1", traces)
	}
	delete(written, "secret.yaml")
	for name, text := range written {
		secretFree(t, name, text)
	}
	if !strings.Contains(written["report.json"], "hmac:") {
		t.Error("the report does not show a hash of the value; perhaps it shows nothing of the Secret at all")
	}
}

// secretFree checks that a text contains neither the token nor the value of PLANTED.
func secretFree(t *testing.T, name, text string) {
	t.Helper()
	for _, value := range []string{token, planted} {
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), base64.RawStdEncoding.EncodeToString([]byte(value))} {
			if strings.Contains(text, form) {
				t.Errorf("%s holds %s", name, form)
			}
		}
	}
}

func TestSecretsThatAControllerPrintsAreNotKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := check(t, dir, 1, ofWidgets(t, "secret.yaml", "--faults=error-500", "--verbose", "-o=json=report.json", "-o=junit=report.xml",
		"-o=sarif=report.sarif", "-o=html=report.html", "-o=text", "--env=SECRET=source", "--env=BUG=panic", "--env=PLANTED="+planted)...)
	secretFree(t, "standard output", c.stdout.String())
	secretFree(t, "standard error", c.stderr.String())
	if err := os.Remove(filepath.Join(dir, "secret.yaml")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		secretFree(t, path, string(data))
		if info, err := entry.Info(); err == nil && strings.HasPrefix(entry.Name(), "report.") && info.Mode().Perm() != 0o600 {
			t.Errorf("others can read %s: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	crashed := readJSON[checkReport](t, filepath.Join(dir, "report.json")).Findings[0]
	if want := "token [secret value], PLANTED [secret value]"; crashed.Verdict != "CRASHED" || !strings.Contains(crashed.Detail, want) {
		t.Errorf("%q is not in %+v", want, crashed)
	}

	// The finding's file alone is not enough to run the controller.
	writeFile(t, filepath.Join(dir, "foreign.json"), readFile(t, filepath.Join(dir, crashed.File)))
	foreign := check(t, dir, 2, "replay", "foreign.json")
	for _, want := range []string{"controller   " + checked(t), "environment  PLANTED (the variable of your environment)", "add --yes to run them"} {
		if !strings.Contains(foreign.stderr.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, foreign.stderr)
		}
	}
	if unset := check(t, dir, 2, "replay", "--yes", "foreign.json", "--env=BUG=panic", "--env=SECRET=source").stderr.String(); !strings.Contains(unset, "PLANTED is not set in your environment") {
		t.Errorf("without the variable it prints:\n%s", unset)
	}
	check(t, dir, 1, "replay", "--yes", "foreign.json", "--env=BUG=panic", "--env=SECRET=source", "--env=PLANTED=another-value-1234")
	writeFile(t, filepath.Join(dir, "damaged.json"), strings.Replace(readFile(t, filepath.Join(dir, crashed.File)), `"name": "secret"`, `"name": "../../secret"`, 1))
	if damaged := check(t, dir, 2, "replay", "--yes", "damaged.json").stderr.String(); !strings.Contains(damaged, "is not a DNS label") {
		t.Errorf("for a scenario with the name ../../secret it prints:\n%s", damaged)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// noFaults selects a kind of fault that cannot occur here, because there is no Lease to
// lose. Tests use noFaults for bugs that appear without a fault.
const noFaults = "--faults=lose-lease"

func TestCheckFindsWhatIsWrongWithoutAnyFault(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, scenario, rest, bug string
		verdict, says             string
	}{
		// The loop never ends, so every run takes the whole timeout.
		{"loop", "create.yaml", "rest: {timeout: 3s}\n", "flip", "HOT LOOP", "the controller sends PUT configmaps default/demo-first"},
		{"leak", "life.yaml", "", "no-owner", "LEAK", "ConfigMap default/demo-first is left over"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			scenario := edited(t, dir, test.scenario, "steps:", test.rest+"steps:")
			check(t, dir, 1, ofWidgets(t, scenario, noFaults, "--env=BUG="+test.bug, "-o=json=report.json")...)
			f := onlyFinding(t, filepath.Join(dir, "report.json"))
			if f.Verdict != test.verdict || !strings.Contains(f.Sentence, test.says) || f.Fault != nil {
				t.Errorf("it found %+v", f)
			}
		})
	}
}

func TestCheckFindsPanicAtAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check(t, dir, 1, ofWidgets(t, "create.yaml", "--faults=error-500", "--stop-at-first", "--env=BUG=panic", "-o=json=report.json")...)
	f := onlyFinding(t, filepath.Join(dir, "report.json"))
	if f.Verdict != "CRASHED" || f.Reproduced != 3 || !strings.Contains(f.Sentence, "unexpected internal error") {
		t.Errorf("it found %+v", f)
	}
}

// The next resync comes long after a restart would have hidden that the controller recovers on its
// own.
func TestControllerThatRecoversAtItsNextResyncIsOnlyLate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := func(more ...string) []string {
		return append([]string{"--crds=widgets.yaml", "--scenario=create.yaml", "--seed=7", "--profile=gc", "--horizon=9s",
			"--faults=delete-child", "--stop-at-first", "--env=BUG=deaf"}, append(more, "--", checked(t))...)
	}
	c := check(t, dir, 0, args("--env=RESYNC=30s", "-o=json=late.json")...)
	r := readJSON[checkReport](t, filepath.Join(dir, "late.json"))
	if len(r.Findings) != 0 || len(r.Remarks) == 0 || r.Remarks[0].Verdict != "RECOVERED LATE" || !strings.Contains(r.Remarks[0].Sentence, "on its own, after ") {
		t.Errorf("with a resync every 30 s, it reports %+v and\n%s", r.Findings, c.stdout)
	}
	check(t, dir, 1, args("-o=json=never.json")...)
	if f := onlyFinding(t, filepath.Join(dir, "never.json")); f.Verdict != "DIVERGED UNTIL RESTART" {
		t.Errorf("without a resync, it found %+v", f)
	}
}

func TestFindingThatIsFixedIsReportedAndMovedAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := func(output string) []string {
		return []string{"--crds=widgets.yaml", "--scenario=create.yaml", "--workers=1", "--seed=7", "--faults=error-500", "-o=json=" + output, "-o=text",
			"--", "sh", "-c", `BUG=$(cat bug.txt) exec "$0"`, checked(t)}
	}
	writeFile(t, filepath.Join(dir, "bug.txt"), "panic")
	check(t, dir, 1, args("report.json")...)
	was := onlyFinding(t, filepath.Join(dir, "report.json"))
	writeFile(t, filepath.Join(dir, "bug.txt"), "")
	c := check(t, dir, 0, args("again.json")...)
	if !strings.Contains(c.stdout.String(), "- fixed: CRASHED: ") {
		t.Errorf("the report does not name the fixed finding:\n%s", c.stdout)
	}
	moved := filepath.Join(dir, filepath.Dir(was.File), "fixed", filepath.Base(was.File))
	if _, err := os.Stat(moved); err != nil {
		t.Errorf("the fixed finding: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, was.File)); err == nil {
		t.Error("the fixed finding is still tried first")
	}
}

// The sleep of 14 s stands for Node.js or a Java virtual machine, which may take this long
// to load on a busy machine. The sleep is longer than koboshi check waits for a controller
// that has already started.
func TestControllerThatLoadsForLongAfterAKillIsNotBlamed(t *testing.T) {
	t.Parallel()
	const slow = `case "$KUBECONFIG" in
*/controller-1.kubeconfig) ;;
*) echo again >>again.txt; sleep 14 ;;
esac
exec "$0"`
	dir := t.TempDir()
	c := check(t, dir, 0, "--crds=widgets.yaml", "--scenario=create.yaml", "--workers=3", "--seed=7", "--profile=gc",
		"--faults=kill-after,restart", "-o=json=report.json", "--", "sh", "-c", slow, checked(t))
	if _, err := os.Stat(filepath.Join(dir, "again.txt")); err != nil {
		t.Errorf("no controller was restarted: %v\n%s", err, c.stdout)
	}
	r := readJSON[checkReport](t, filepath.Join(dir, "report.json"))
	for _, k := range r.Tried {
		if k.Clean == 0 || k.Clean != k.Planned {
			t.Errorf("%d faults planned, but only %d are clean", k.Planned, k.Clean)
		}
	}
}

func TestShardsOfACleanControllerAreTheWholePlan(t *testing.T) {
	t.Parallel()
	const kinds = "--faults=kill-lost,conflict,restart"
	dir := t.TempDir()
	whole := checkIn(t, dir, ofWidgets(t, "life.yaml", kinds, "--plan")...)
	parts := []*checking{
		checkIn(t, dir, ofWidgets(t, "life.yaml", kinds, "--shard=1/2", "-o=json=part-1.json")...),
		checkIn(t, dir, ofWidgets(t, "life.yaml", kinds, "--shard=2/2", "-o=json=part-2.json")...),
	}
	for _, c := range append(parts, whole) {
		c.start(t)
	}
	whole.end(t, 0)
	plan := strings.Split(strings.TrimSpace(whole.stdout.String()), "\n")
	plan = slices.DeleteFunc(plan, func(line string) bool { return !strings.Contains(line, " life: ") })

	args := []string{"report", "-o=json=whole.json"}
	for i, c := range parts {
		c.end(t, 0)
		file := fmt.Sprintf("part-%d.json", i+1)
		r := readJSON[checkReport](t, filepath.Join(dir, file))
		if own := r.planned(t); own == 0 || own+r.LeftToShards != len(plan) || r.WholePlan != len(plan) {
			t.Errorf("shard %d has %d faults and leaves %d to others, of %d; the whole plan has %d", i+1, own, r.LeftToShards, r.WholePlan, len(plan))
		}
		args = append(args, file)
	}
	if text := check(t, dir, 0, append(args, "-o=text")...).stdout.String(); !strings.HasPrefix(text, "clean: ") {
		t.Errorf("the merged report is not clean:\n%s", text)
	}
	merged := readJSON[checkReport](t, filepath.Join(dir, "whole.json"))
	if n := merged.planned(t); n != len(plan) || len(plan) < 6 {
		t.Errorf("the parts together have %d faults, and the whole plan has %d:\n%s", n, len(plan), strings.Join(plan, "\n"))
	}
	for _, k := range merged.Tried {
		if k.Clean != k.Planned {
			t.Errorf("%d faults planned, but only %d are clean", k.Planned, k.Clean)
		}
	}
	if merged.Confirmations != 0 || merged.Runs != merged.References+len(plan) {
		t.Errorf("%d runs, %d of them without a fault, for %d faults", merged.Runs, merged.References, len(plan))
	}
}

func TestAFindingIsGoneWhenItsOwnLineIsInTheSettings(t *testing.T) {
	t.Parallel()
	c := foundBug(t)
	f := onlyFinding(t, filepath.Join(c.dir, "report.json"))
	if f.Silence == nil || !strings.Contains(c.stdout.String(), "add to koboshi.yaml:") {
		t.Fatalf("the finding does not name the line that accepts it: %+v\n%s", f, c.stdout.String())
	}
	idle := "Secret default/demo-third *"
	writeFile(t, filepath.Join(c.dir, "accepted.yaml"), f.Silence.Add+"  - "+idle+"\n")
	check(t, c.dir, 0, ofWidgets(t, "secret.yaml", "--faults=kill-lost", "--config=accepted.yaml", "--findings=none",
		"-o=json=accepted.json", "--env=SECRET=source", "--env=BUG=first-exists")...)
	r := readJSON[checkReport](t, filepath.Join(c.dir, "accepted.json"))
	if len(r.Findings) != 0 || r.planned(t) == 0 {
		t.Errorf("with\n%sit found %+v", f.Silence.Add, r.Findings)
	}
	if !slices.Equal(r.Settings, []string{"ignore (2)"}) || r.SettingsFile != "accepted.yaml" {
		t.Errorf("the settings are %q from %s", r.Settings, r.SettingsFile)
	}
	idles := slices.DeleteFunc(r.Notes, func(note string) bool { return !strings.Contains(note, "matched no field") })
	if len(idles) != 1 || !strings.Contains(idles[0], idle) {
		t.Errorf("the lines that matched nothing are %q, want %s", idles, idle)
	}
}
