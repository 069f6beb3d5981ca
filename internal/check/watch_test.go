package check

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// watchingLab returns a lab that answers with a lesson that has a reference, and with observations
// at rest. It writes each request into a file.
func watchingLab(t *testing.T, watched lab.Watched) (program []string, requests string) {
	t.Helper()
	dir := t.TempDir()
	answer := func(name string, content any) string {
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	lesson := answer("lesson", map[string]any{"lesson": &lab.Lesson{
		Scenario: &scenario.Scenario{Name: "life", Steps: []scenario.Step{{Name: "create"}}}, Reference: &judge.Reference{}, Runs: 3, Writes: 1,
	}})
	seen := answer("watched", map[string]any{"watched": watched})
	requests = filepath.Join(dir, "requests")
	log := "printf '%s\\n' \"$line\" >>" + requests
	return shellLab(t, fmt.Sprintf("*'\"learn\"'*) %s; cat %s ;;\n*'\"watch\"'*) %s; cat %s ;;", log, lesson, log, seen)), requests
}

// asked returns how often a lab got a request that contains a text.
func asked(t *testing.T, requests, text string) (n int) {
	t.Helper()
	data, err := os.ReadFile(requests)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func TestScenarioWithAPlateauIsLearntAgainWithALongerQuietTime(t *testing.T) {
	program, requests := watchingLab(t, lab.Watched{Step: "create", Horizon: time.Second, Quiet: 5 * time.Second, What: "W w"})
	result, err := runIn(t.Context(), t, program, Options{Horizon: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if learnt, longer := asked(t, requests, `"learn":`), asked(t, requests, `"quiet":"5s"`); learnt != 2 || longer != 1 {
		t.Errorf("the scenario was learnt %d times, and %d times with the longer quiet time", learnt, longer)
	}
	if n := len(result.Report.Scenarios); n != 1 {
		t.Errorf("the report describes %d scenarios", n)
	}
	if notes := strings.Join(result.Report.Notes, "\n"); !strings.Contains(notes, "W w changed again") || !strings.Contains(notes, "the controller was watched for 1s, 1 time") {
		t.Errorf("the notes are:\n%s", notes)
	}
}

func TestQuietControllerIsLearntOnceAndAHorizonOfZeroWatchesNothing(t *testing.T) {
	for horizon, watched := range map[time.Duration]int{time.Second: 1, 0: 0} {
		program, requests := watchingLab(t, lab.Watched{Step: "create", Horizon: time.Second})
		if _, err := runIn(t.Context(), t, program, Options{Horizon: horizon}); err != nil {
			t.Fatal(err)
		}
		if learnt, n := asked(t, requests, `"learn":`), asked(t, requests, `"watch":`); learnt != 1 || n != watched {
			t.Errorf("with a horizon of %s, there were %d lessons and %d watches", horizon, learnt, n)
		}
	}
}

func TestLoopAtRestIsAFinding(t *testing.T) {
	loop := judge.Finding{ID: "1", Verdict: judge.HotLoop, Scenario: "life", Step: "create", Sentence: "it writes", Reproduced: 2, Attempts: 2}
	program, _ := watchingLab(t, lab.Watched{Step: "create", Horizon: time.Second, Findings: []judge.Finding{loop}, Ignore: []string{"W status.updated"}})
	result, err := runIn(t.Context(), t, program, Options{Horizon: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	// The scenario is learnt again, because the field is now ignored. The finding must still be
	// reported afterwards.
	if found := result.Report.Findings; len(found) != 1 || found[0].Verdict != judge.HotLoop || found[0].Reproduced != 2 || found[0].WatchedSeconds != 1 {
		t.Errorf("%+v", found)
	}
	if got := result.Watched[Rest{"life", "create"}]; got != time.Second {
		t.Errorf("the rest was watched for %s", got)
	}
}

func TestScenarioThatIsLearntAgainLeavesTheFindingsOfOthers(t *testing.T) {
	rbac := judge.Finding{ID: "rbac", Verdict: judge.RBACMissing, Scenario: "a", AlsoIn: []string{"b"}}
	leak := judge.Finding{ID: "leak", Verdict: judge.Leak, Scenario: "a"}
	for name, tt := range map[string]struct {
		shown []judge.Finding
		want  string
	}{
		"a": {[]judge.Finding{rbac, leak}, "rbac in b "},
		"b": {[]judge.Finding{rbac}, "rbac in a leak in a "},
		"c": {nil, "rbac in a and b leak in a "},
	} {
		got := ""
		for _, f := range withoutScenario([]judge.Finding{rbac, leak}, tt.shown, name) {
			got += f.ID + " in " + strings.Join(append([]string{f.Scenario}, f.AlsoIn...), " and ") + " "
		}
		if got != tt.want {
			t.Errorf("without %s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestNoScenarioIsLearntAgainOnceThreeQuartersOfTheBudgetAreUsedUp(t *testing.T) {
	t.Parallel()
	program := shellLab(t, "*'\"learn\"'*'\"first\"'*) sleep 8; echo '{\"lesson\":{\"scenario\":{\"name\":\"first\",\"steps\":[{\"name\":\"create\"}]},\"runs\":3}}' ;;")
	c := newCheck(Options{Program: program, Dir: t.TempDir(), Workers: 1, Budget: 10 * time.Second, Scenarios: scenarios("first", "second")})
	for _, sc := range c.Scenarios {
		c.lessons[sc.Name] = &fleet.Lesson{Lesson: &lab.Lesson{Scenario: sc, Reference: &judge.Reference{}}}
	}
	if err := c.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer c.fleet.Stop()
	c.began = time.Now()
	plateau := func() []*lab.Watched { return []*lab.Watched{{Step: "create", Quiet: time.Second}} }
	if err := c.relearn(t.Context(), map[string][]*lab.Watched{"first": plateau(), "second": plateau()}); err != nil {
		t.Fatal(err)
	}
	if left := c.result.Report.NotLearnt; len(left) != 1 || left[0].Scenario != "second" || left[0].Why != whyAgain || c.lessons["second"] != nil {
		t.Errorf("left out are %+v", left)
	}
}
