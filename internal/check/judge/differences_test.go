package judge

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestCountersAndHistoriesMayAdvanceAfterAFault(t *testing.T) {
	for path, tt := range map[string]struct {
		want, got string
		harmless  bool
	}{
		"status.retries":                 {"1", "2", true},
		"status.restartCount":            {"", "3", true},
		"status.failureCount":            {"2", "1", false},
		"status.lastError":               {"", `"timeout"`, true},
		"status.lastFailure.reason":      {"", `"Timeout"`, true},
		"status.lastTransition":          {`"a"`, `"b"`, true},
		"status.history":                 {`["a"]`, `["a","b"]`, true},
		"status.workers[a].attempts":     {"1", "4", true},
		"status.replicas":                {"1", "2", false},
		"status.ready":                   {"true", "false", false},
		"status.phase":                   {`"Ready"`, `"Pending"`, false},
		"spec.retries":                   {"1", "2", false},
		"data.history":                   {`["a"]`, `["a","b"]`, false},
		"status.lastBackup":              {`"a"`, `"b"`, false},
		"status.observedGeneration":      {"2", "1", false},
		"status.conditions[Ready].error": {`"x"`, `"y"`, false},
	} {
		if got := advanced(state.Difference{Object: "Widget.x default/w", Path: path, Want: tt.want, Got: tt.got}); got != tt.harmless {
			t.Errorf("%s %q to %q: harmless is %t", path, tt.want, tt.got, got)
		}
	}
}

func TestAReferenceThatIsItselfAFindingCondemnsNoOtherRun(t *testing.T) {
	orphan := `ConfigMap default/orphan {"metadata":{"labels":{"widget":"w"}}}`
	story := func(s *story, leaks bool) {
		s.step("create").puts(driver, widget).puts(one, owned("child", ""))
		if leaks {
			s.puts(one, orphan)
		}
		s.step(deleted).deletes(driver, "Widget.x default/w").deletes(driver, "ConfigMap default/child")
	}
	sc := scene()
	sc.Steps = append(sc.Steps[:1], sc.Steps[2])
	var runs []*evidence.Run
	for range 3 {
		s := tell(t)
		story(s, true)
		runs = append(runs, s.end())
	}
	r, err := NewReference(sc, runs)
	if err != nil {
		t.Fatal(err)
	}
	found := Faultless(r, runs, nil)
	if verdicts(found) != "LEAK" {
		t.Fatalf("without a fault: %s", verdicts(found))
	}
	for _, tt := range []struct {
		name  string
		doubt bool
		leaks bool
		extra string
		want  string
	}{
		{"the orphan is missing, and the reference has no doubts", false, false, "", "DIVERGED"},
		{"the orphan is missing", true, false, "", ""},
		{"the orphan is there as well", true, true, "", ""},
		{"another object is left over", true, false, `ConfigMap default/more {}`, "LEAK"},
	} {
		r.Doubts = nil
		if tt.doubt {
			r.Doubt(found)
		}
		s := tell(t)
		story(s, tt.leaks)
		if tt.extra != "" {
			s.puts(one, tt.extra)
		}
		s.healed(evidence.Never)
		if got := Judge(r, s.after(killedAt(deleted)), nil); verdicts(got) != tt.want {
			t.Errorf("%s: %q, want %q: %+v", tt.name, verdicts(got), tt.want, got)
		}
	}
}
