package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// driven returns arguments to check the controller of Widgets with a command that runs the suite
// in conformance/driven. The suite waits for the given time.
func driven(t *testing.T, command, patience string, flags ...string) []string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	suite := fmt.Sprintf("cd '%s' && DRIVEN=%s %s", here, patience, command)
	args := []string{"--crds=widgets.yaml", "--driver=" + suite, "--workers=1", "--seed=7", "--profile=gc", "--horizon=0"}
	return slices.Concat(args, flags, []string{"--", checked(t)})
}

// goTest links the suite again in each run, which is quicker without debug symbols and without
// vetting all dependencies.
const goTest = "go test -vet=off -ldflags=-w ./driven"

func TestASuiteOfGoTestDrivesACheckThatFindsABug(t *testing.T) {
	t.Parallel()
	checked(t)
	dir := filepath.Join(checkedDir, "driven")
	c := check(t, dir, 1, driven(t, goTest, "20s", "--faults=kill-lost", "--stop-at-first", "--env=BUG=first-exists", "-o=json=report.json", "-o=text")...)
	f := onlyFinding(t, filepath.Join(c.dir, "report.json"))
	if f.Verdict != "DIVERGED" || f.Fault == nil || f.Fault.Kind != "kill-lost" || !strings.HasPrefix(f.Scenario, "driver-") || f.Step != "suite" {
		t.Errorf("it found %+v", f)
	}
	// The name of the namespace is random.
	if len(f.Differences) != 1 || f.Differences[0].Object != "ConfigMap driven-*-*/demo-second" || f.Differences[0].Path != "" {
		t.Errorf("the differences are %v", f.Differences)
	}
	if !strings.Contains(f.Detail, "waited for demo-second to be small") {
		t.Errorf("the finding does not show the output of the suite: %s", f.Detail)
	}
	if log := readFile(t, filepath.Join(c.dir, ".koboshi", "suite.log")); !strings.Contains(log, "ok") {
		t.Errorf("the output of the suite without a fault is %q", log)
	}
	// The replay of a file from elsewhere shows the command and does not run it.
	elsewhere := filepath.Join(t.TempDir(), "finding.json")
	if err := os.Rename(filepath.Join(c.dir, f.File), elsewhere); err != nil {
		t.Fatal(err)
	}
	replay := check(t, c.dir, 2, "replay", elsewhere)
	if !strings.Contains(replay.stderr.String(), goTest) {
		t.Errorf("the replay does not show the command of the suite: %s", replay.stderr)
	}
}

func TestASuiteFindsNothingInARightController(t *testing.T) {
	t.Parallel()
	// This check runs the suite many times, so the suite is linked only once.
	suite := filepath.Join(t.TempDir(), "driven.test")
	if output, err := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-w", "-o", suite, "./driven").CombinedOutput(); err != nil {
		t.Fatalf("compiling the suite: %v\n%s", err, output)
	}
	c := check(t, t.TempDir(), 0, driven(t, "'"+suite+"'", "2m", "--faults=kill-lost,delay-watch", "-o=json=report.json")...)
	r := readJSON[checkReport](t, filepath.Join(c.dir, "report.json"))
	if r.planned(t); len(r.Tried) != 2 {
		t.Errorf("%d kinds of fault were tried, want 2: %+v", len(r.Tried), r.Tried)
	}
	// The controller writes six times. If the suite deletes the Widget while the controller reconciles it, the
	// controller makes a child once more, and a fault at that write can be planned but not applied.
	for _, kind := range r.Tried {
		if kind.Clean < 6 || kind.Clean+kind.NotApplied != kind.Runs {
			t.Errorf("of %d runs, %d are clean; not applied: %+v; inconclusive: %+v", kind.Runs, kind.Clean, r.NotApplied, r.Inconclusive)
		}
	}
	for _, not := range r.NotApplied {
		if not.Fault.Point.Resource != "configmaps" {
			t.Errorf("a fault that every run should have was not applied: %+v", not)
		}
	}
}

func TestASuiteThatFailsWithoutAFaultIsAnError(t *testing.T) {
	t.Parallel()
	c := checkIn(t, t.TempDir(), "--crds=widgets.yaml", "--driver=echo It never works.; exit 3", "--workers=1", "--profile=gc", "--", checked(t))
	c.start(t)
	c.end(t, 2)
	for _, part := range []string{"the test suite fails without a fault, so nothing can be learned from it", "exit status 3", "It never works."} {
		if !strings.Contains(c.stderr.String(), part) {
			t.Errorf("the error does not say %q:\n%s", part, c.stderr)
		}
	}
}

func TestASuiteThatDoesNothingIsAnError(t *testing.T) {
	t.Parallel()
	c := checkIn(t, t.TempDir(), "--crds=widgets.yaml", "--driver=test -n \"$KUBECONFIG\" && kubectl get widgets", "--workers=1", "--profile=gc", "--", checked(t))
	c.start(t)
	c.end(t, 2)
	if want := "the controller wrote nothing while the test suite ran"; !strings.Contains(c.stderr.String(), want) {
		t.Errorf("the error does not say %q:\n%s", want, c.stderr)
	}
}
