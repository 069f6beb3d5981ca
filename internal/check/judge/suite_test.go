package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// inNamespace is the record of a run in which a suite works in a namespace with a random name.
type inNamespace struct {
	*story
	name string
}

func suiteIn(t *testing.T, namespace string) *inNamespace {
	s := &inNamespace{tell(t), namespace}
	s.step("suite")
	s.puts(driver, "Namespace "+namespace)
	s.puts(driver, s.in(`Widget.x %s/w {"spec":{"n":1}}`))
	return s
}

func (s *inNamespace) in(text string) string { return fmt.Sprintf(text, s.name) }

// child makes the child of the Widget.
func (s *inNamespace) child() *inNamespace {
	s.puts(one, s.in(`ConfigMap %s/child {"data":{"a":"1"},"metadata":{"labels":{"of":"w"}}}`))
	return s
}

func (s *inNamespace) pauses(d time.Duration) *inNamespace {
	s.at += d
	return s
}

// restarted records that the checker restarted the controller, which has read its objects again.
func (s *inNamespace) restarted() *inNamespace {
	s.entry(trace.Entry{Fault: &trace.Fault{What: string(evidence.Restart)}})
	s.tick()
	ref, _ := object(s.t, s.in("Widget.x %s/w"))
	s.call(one, "list", ref, 200, 0)
	s.tick()
	return s
}

// cleans deletes everything, as suites do at their end.
func (s *inNamespace) cleans() *inNamespace {
	s.pauses(time.Second)
	s.deletes(driver, s.in("Widget.x %s/w"))
	if ref, _ := object(s.t, s.in("ConfigMap %s/child")); s.now[ref] != nil {
		s.deletes(one, s.in("ConfigMap %s/child"))
	}
	s.deletes(driver, "Namespace "+s.name)
	return s
}

// ends ends the suite; failed is empty if it passed.
func (s *inNamespace) ends(failed string) *inNamespace {
	s.run.Steps[0].Suite = &evidence.Suite{EndedAt: s.at, Ended: s.rev, Failed: failed}
	return s
}

const failure = "step \"suite\": sh -c 'go test': exit status 1\n  suite_test.go:7: waited for the child\nFAIL"

func suiteReference(t *testing.T) *Reference {
	t.Helper()
	var runs []*evidence.Run
	for _, name := range []string{"e2e-big-ox", "e2e-red-goose", "e2e-splendid-bee"} {
		runs = append(runs, suiteIn(t, name).child().cleans().ends("").end())
	}
	r, err := NewReference(&scenario.Scenario{Name: "s", Steps: []scenario.Step{{Name: "suite", Run: []string{"sh"}, Suite: true}}}, runs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestASuiteIsJudgedByWhatItWaitedFor(t *testing.T) {
	r := suiteReference(t)
	fault := killedAt("suite")
	tests := []struct {
		name, want, sentence string
		tell                 func(*inNamespace) *inNamespace
	}{
		{"it passes", "", "", func(s *inNamespace) *inNamespace { return s.child().cleans().ends("") }},
		{
			"the child is never made", "DIVERGED", "ConfigMap e2e-*-*/child is missing, even after a restart, and the suite failed",
			func(s *inNamespace) *inNamespace {
				return s.pauses(5 * time.Second).restarted().pauses(5 * time.Second).cleans().ends(failure)
			},
		},
		{
			"the child is made after a restart", "DIVERGED UNTIL RESTART", "ConfigMap e2e-*-*/child is missing, until the controller is restarted after 5s",
			func(s *inNamespace) *inNamespace {
				return s.pauses(5 * time.Second).restarted().child().cleans().ends("")
			},
		},
		{
			"the suite pauses for longer than usual", "", "",
			func(s *inNamespace) *inNamespace {
				return s.child().pauses(5 * time.Second).restarted().cleans().ends("")
			},
		},
		{
			"the suite gives up early", "SUITE FAILED", "the test suite failed: suite_test.go:7: waited for the child",
			func(s *inNamespace) *inNamespace { return s.pauses(2 * time.Second).cleans().ends(failure) },
		},
		{
			"the restarted controller has no time", "SUITE FAILED", "",
			func(s *inNamespace) *inNamespace {
				return s.pauses(5 * time.Second).restarted().pauses(time.Second / 2).ends(failure)
			},
		},
		{
			"the suite asserts something else", "SUITE FAILED", "",
			func(s *inNamespace) *inNamespace {
				return s.child().pauses(5 * time.Second).restarted().pauses(5 * time.Second).cleans().ends(failure)
			},
		},
		{
			"the suite does something else", "SUITE FAILED", "",
			func(s *inNamespace) *inNamespace {
				s.puts(driver, s.in(`Widget.x %s/other {"spec":{"n":1}}`))
				return s.pauses(5 * time.Second).restarted().pauses(5 * time.Second).ends(failure)
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run := test.tell(suiteIn(t, "e2e-tiny-cat")).after(fault)
			found := Judge(r, run, nil)
			if got := verdicts(found); got != test.want {
				t.Fatalf("got %q, want %q: %+v", got, test.want, found)
			}
			if len(found) > 0 && !strings.Contains(found[0].Sentence, test.sentence) {
				t.Errorf("the sentence is %q, without %q", found[0].Sentence, test.sentence)
			}
		})
	}
}

func TestAFailedSuiteIsARemarkUnlessTheControllerStopped(t *testing.T) {
	if !SuiteFailed.IsRemark() {
		t.Error("a suite that fails makes a check fail")
	}
}

func TestRandomNamespacesOfASuiteHaveOneName(t *testing.T) {
	r := suiteReference(t)
	for _, name := range []string{"e2e-a1-b2", "e2e-wonderful-ox"} {
		if got := r.Mask.Name(name, "child", "configmaps"); got != "e2e-*-*/child" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, name := range []string{"kube-system", "default", "e2e-one"} {
		if got := r.Mask.Name(name, "child", "configmaps"); got != name+"/child" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestPausesOfTheSuiteAreNotThoseOfTheController(t *testing.T) {
	s := suiteIn(t, "e2e-big-ox")
	run := s.pauses(time.Second).child().pauses(9 * time.Second).cleans().ends("").end()
	if pause, work := Pauses(run, run.Steps[0]); pause > 2*time.Second || pause < time.Second || work != pause {
		t.Errorf("the controller pauses for %s, and works for %s", pause, work)
	}
	if w := newSuite(&scenario.Scenario{}, []*evidence.Run{run, run, run}).Waits; len(w) != 4 || w[1].Stall < 18*time.Second || w[0].Stall != shortestStall {
		t.Errorf("the turns are %+v", w)
	}
}

func TestDeletionsByTheClusterAreNoTurns(t *testing.T) {
	s := suiteIn(t, "e2e-big-ox")
	s.puts(driver, `Namespace e2e-big-ox {"metadata":{"deletionTimestamp":"2026-11-26T00:00:00Z"}}`)
	s.deletes(driver, "Widget.x e2e-big-ox/w")
	run := s.ends("").end()
	var names []string
	for _, turn := range turnsOf(run, run.Steps[0]) {
		names = append(names, turn.name)
	}
	if got := strings.Join(names, ", "); got != "1 created Namespace, 2 created Widget.x, 3 deleted Namespace" {
		t.Error(got)
	}
}

func TestWhatTheControllerLeavesBehindAfterASuiteIsALeak(t *testing.T) {
	s := &subject.Subject{Primary: []string{"Widget.x"}}
	tests := map[string]struct {
		tell func(*inNamespace)
		want string
	}{
		"everything is deleted": {func(*inNamespace) {}, ""},
		"a child in another namespace stays": {func(s *inNamespace) {
			s.puts(one, `ConfigMap elsewhere/child {"metadata":{"labels":{"of":"w"}}}`)
		}, "LEAK"},
		"an object of another client stays": {func(s *inNamespace) {
			s.puts(driver, `ConfigMap elsewhere/child {"metadata":{"labels":{"of":"w"}}}`)
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var runs []*evidence.Run
			for _, name := range []string{"e2e-big-ox", "e2e-red-goose", "e2e-splendid-bee"} {
				in := suiteIn(t, name).child()
				test.tell(in)
				runs = append(runs, in.cleans().ends("").end())
			}
			r, err := NewReference(&scenario.Scenario{Name: "s", Steps: []scenario.Step{{Name: "suite", Run: []string{"sh"}, Suite: true}}}, runs)
			if err != nil {
				t.Fatal(err)
			}
			if found := Faultless(r, runs, s); verdicts(found) != test.want {
				t.Errorf("got %+v, want %s", found, test.want)
			}
		})
	}
}

func TestASuiteWhoseOrderVariesIsNoted(t *testing.T) {
	var runs []*evidence.Run
	for i := range 3 {
		s := suiteIn(t, "e2e-big-ox")
		if i == 1 {
			s.puts(driver, "ConfigMap e2e-big-ox/settings")
		}
		runs = append(runs, s.child().cleans().ends("").end())
	}
	notes := newSuite(&scenario.Scenario{}, runs).Notes()
	if len(notes) != 1 || !strings.Contains(notes[0], "only the first 2 of its 5 changes in the same order") {
		t.Errorf("the notes are %q", notes)
	}
	if notes := newSuite(&scenario.Scenario{}, runs[2:]).Notes(); notes != nil {
		t.Errorf("a suite that always does the same has the notes %q", notes)
	}
}

func TestObjectsThatASuiteMakesInAnyOrderKeepTheirNames(t *testing.T) {
	var runs []*evidence.Run
	for _, names := range [][2]string{{"first", "other"}, {"other", "first"}, {"first", "other"}} {
		s := suiteIn(t, "e2e-big-ox")
		for _, name := range names {
			s.puts(driver, "Widget.x e2e-big-ox/"+name)
		}
		runs = append(runs, s.cleans().ends("").end())
	}
	r, err := NewReference(&scenario.Scenario{Name: "s"}, runs)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Mask.Name("default", "first", "widgets"); got != "default/first" {
		t.Errorf("the name is %s", got)
	}
}

func TestTheReasonOfAFailureIsTheLineThatNamesAProblem(t *testing.T) {
	const command = "step \"suite\": sh -c 'make e2e': exit status 1\n  "
	for text, want := range map[string]string{
		"a_test.go:7: waited for the child: context deadline exceeded\n--- FAIL: TestA (16.20s)\nFAIL\nFAIL\texample.com/e2e\t16.3s\nFAIL":   "a_test.go:7: waited for the child: context deadline exceeded",
		"=== ERROR\nactual resource not found\n| widget | CLEANUP | END |\nError: some tests failed\n- Failed  tests 1\nDone with failures.": "actual resource not found",
		"case.go:335: configmaps \"b\" not found\nharness.go:430: run tests finished\n--- FAIL: kuttl (25.95s)\nFAIL":                        "case.go:335: configmaps \"b\" not found",
		"the doll has no eyes\nFAIL": "the doll has no eyes",
		"FAIL":                       "FAIL",
	} {
		if got := complaint(command + text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := complaint("it did not start"); got != "it did not start" {
		t.Errorf("a text of one line became %q", got)
	}
}
