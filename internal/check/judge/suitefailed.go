package judge

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// suites judges a test suite that the fault has stopped. A fault takes time, and a suite may wait for
// less than that, so its failure alone proves nothing. It is a defect of the controller if the
// controller stopped while the suite waited, and if the state then lacked what makes the suite go on
// without the fault.
//
//	the suite goes on after a restart of the controller    DIVERGED UNTIL RESTART
//	the suite fails, and a restart did not help            DIVERGED
//	the suite fails for any other reason                   SUITE FAILED, a remark
func suites(in *input) []Finding {
	for _, s := range in.steps {
		if s.Suite == nil || in.ref.Suite == nil {
			continue
		}
		help := in.restartedIn(s)
		switch {
		case s.Suite.Failed == "" && help == 0:
		case s.Suite.Failed == "":
			if differences := in.lacking(s, help-1); len(differences) > 0 {
				return []Finding{in.finding(DivergedUntilRestart, s.Name,
					"while the test suite waited, "+outcome(differences, false)+untilHelped[evidence.Restart]+" after "+rounded(help-Moved(in.run, help-1)).String(), differences)}
			}
		default:
			return []Finding{in.suiteFailed(s, help)}
		}
	}
	return nil
}

// SuiteWasLate returns the remark for a finding of a suite, if the suite goes on without help when the
// controller has more time. It reports false for a finding that does not concern a suite that waited.
func SuiteWasLate(f Finding) (Finding, bool) {
	before, _, found := strings.Cut(f.Sentence, untilHelped[evidence.Restart])
	f.Verdict, f.Sentence = RecoveredLate, before+", until the controller tries again on its own"
	return f, found
}

// suiteFailed makes the finding or the remark for a suite that failed.
func (in *input) suiteFailed(s step, help time.Duration) Finding {
	f := Finding{}
	if differences := in.stillLacking(s, help); len(differences) > 0 {
		f = in.finding(Diverged, s.Name, "while the test suite waited, "+outcome(differences, false)+", even after a restart, and the suite failed", differences)
	} else {
		f = in.finding(SuiteFailed, s.Name, "the test suite failed: "+complaint(s.Suite.Failed), nil)
	}
	f.Detail = s.Suite.Failed
	return f
}

// complaint returns the line that probably says why a suite failed: the last line that names a
// problem, or else the last line that says more than that something failed.
func complaint(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	said := strings.TrimSpace(lines[len(lines)-1])
	for i, longer := len(lines)-1, false; i > 0; i-- {
		line := strings.TrimSpace(lines[i])
		if len(strings.Fields(line)) < 3 || terse.MatchString(line) {
			continue
		}
		if problem.MatchString(line) {
			return line
		}
		if !longer {
			said, longer = line, true
		}
	}
	return said
}

var (
	// terse matches lines that only say that something failed, as go test, chainsaw and make print
	// them.
	terse = regexp.MustCompile(`^(FAIL|ok|exit status|make|--- FAIL|Error: some tests failed|Done with failures|- (Passed|Failed|Skipped)|Tests Summary)`)
	// problem matches lines that say what went wrong.
	problem = regexp.MustCompile(`(?i)not found|time(d )?out|deadline|expect|mismatch|refused|wait(ed|ing) for|error`)
)

// restartedIn returns the time at which the checker restarted the controller because the suite waited
// in vain, or 0.
func (in *input) restartedIn(s step) time.Duration {
	for _, e := range in.run.Entries {
		if e.Fault != nil && evidence.Stage(e.Fault.What) == evidence.Restart && e.At >= s.BeganAt && e.At <= s.Suite.EndedAt {
			return e.At
		}
	}
	return 0
}

// stillLacking returns what the suite lacked when it had waited in vain once more after the restart
// of the controller. The time in which the restarted controller loads does not count.
func (in *input) stillLacking(s step, help time.Duration) []state.Difference {
	up := slices.IndexFunc(in.run.Entries, func(e trace.Entry) bool { return help > 0 && e.Call != nil && e.Instance != "" && e.At > help })
	if up < 0 {
		return nil
	}
	from := in.run.Entries[up].At
	times := slices.DeleteFunc(moves(in.run), func(at time.Duration) bool { return at < from || at > s.Suite.EndedAt })
	times = append(times, from, s.Suite.EndedAt)
	slices.Sort(times)
	for i := 1; i < len(times); i++ {
		if times[i]-times[i-1] >= shortestStall/2 {
			return in.lacking(s, times[i]-1)
		}
	}
	return nil
}

// lacking returns the differences between the state at a time and the state in which the suite goes
// on without a fault. If that state was not at rest, only missing objects count.
func (in *input) lacking(s step, at time.Duration) []state.Difference {
	revision := revisionAt(in.run, at, s.Began)
	turns := turnsOf(in.run, s.Step)
	n := turnAt(turns, revision)
	if n < 0 {
		return nil
	}
	want := in.ref.Suite.wait(turns[n].name)
	if want == nil || !slices.Equal(want.Declared, declared(in.ref.Suite.Mask.Label(in.run.History), turns[:n+1])) {
		return nil // the suite does not always do the same
	}
	got := in.ref.Suite.Mask.CanonicalAfter(want.Turn, in.run.History.At(revision))
	return slices.DeleteFunc(want.World.Diff(got), func(d state.Difference) bool {
		missing := d.Path == "" && d.Got == ""
		return !missing && (!want.Rested || advanced(d) || in.ref.advances(d) || isStatus(d.Path) && lateCondition(d))
	})
}

// lateCondition reports whether a condition is only missing. A controller that was down at a moment
// need not record what happened then; see passing.
func lateCondition(d state.Difference) bool { return d.Got == "" }
