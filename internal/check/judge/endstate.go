package judge

import (
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// endState compares the end state of each step with the reference. endState stops at the first
// wrong state, because later wrong states may be its consequences. endState continues after a state
// that became right by itself, even if late.
func endState(in *input) (late []Finding) {
	for _, s := range in.steps {
		if s.held {
			continue
		}
		switch s.Healed {
		case evidence.Never:
			differences := in.ref.Differences(s.Name, in.world(s.Name, s.end))
			if len(differences) == 0 {
				continue // the state was right in the end, or only the ledger differs
			}
			if in.onlyMeddled(differences) {
				return []Finding{in.timed(in.notRestored(s, differences), s)}
			}
			if condition := in.reportedFailure(differences, s.end); condition != "" {
				what := outcome(differences, s.deletes) + ", even after a restart, and " + condition + " reports a failure"
				return []Finding{in.timed(in.finding(GaveUp, s.Name, what, differences), s)}
			}
			return []Finding{in.timed(in.never(s, differences), s)}
		case evidence.Later, evidence.TimeOut:
			if differences := in.ref.Differences(s.Name, in.world(s.Name, s.helped)); late == nil {
				late = []Finding{in.timed(in.finding(RecoveredLate, s.Name, outcome(differences, s.deletes)+lateBy(s), differences), s)}
			}
		case evidence.Relist, evidence.Restart, evidence.Poke:
			differences := in.ref.Differences(s.Name, in.world(s.Name, s.helped))
			if f := in.run.Fault; f != nil && f.EditsMetadata() && in.keepsMetadata(differences) {
				// Many controllers ignore events that change only the metadata, on purpose.
				return []Finding{in.notRestored(s, differences)}
			}
			f := in.finding(DivergedUntilRestart, s.Name, outcome(differences, s.deletes)+untilHelped[s.Healed], differences)
			return []Finding{in.timed(f, s)}
		}
	}
	return late
}

// lateBy describes what a late recovery waited for, as the end of a sentence.
func lateBy(s step) string {
	if s.Healed == evidence.Later {
		return ", until the controller tries again on its own, after " + rounded(s.Period).String()
	}
	return ", until the controller watches again, after up to " + s.Period.String()
}

// untilHelped describes the help that was needed, as the end of a sentence.
var untilHelped = map[evidence.Stage]string{
	evidence.Relist:  ", until the controller's watches are restarted",
	evidence.Restart: ", until the controller is restarted",
	evidence.Poke:    ", even after a restart, until an annotation is set on the resource",
}

// never makes the finding for a wrong state that no help repaired.
func (in *input) never(s step, differences []state.Difference) Finding {
	if s.deletes && !slices.ContainsFunc(differences, func(d state.Difference) bool { return d.Path != "" || d.Got == "" }) {
		if stuck, finalizers := in.stuck(differences, s.end); stuck != "" {
			return in.finding(Diverged, s.Name, stuck+" is never removed: it waits for the finalizer "+finalizers, differences)
		}
		return in.finding(Leak, s.Name, outcome(differences, true)+" after the deletion, even after a restart", differences)
	}
	return in.finding(Diverged, s.Name, outcome(differences, s.deletes)+", even after a restart", differences)
}

// stuck returns a leftover object that is being deleted, and the finalizers that it is
// waiting for.
func (in *input) stuck(differences []state.Difference, revision int64) (object, finalizers string) {
	for ref, content := range in.run.History.Living(revision) {
		key := in.labels.Of(ref)
		if !content.Deleting() {
			continue
		}
		for _, d := range differences {
			if d.Object == key && (object == "" || key < object) {
				object, finalizers = key, strings.Join(content.Finalizers(), ", ")
			}
		}
	}
	return object, finalizers
}

// expectations finds expectations of the scenario that do not hold although the state
// matches the reference. Expectations may concern fields that are not compared.
func expectations(in *input) []Finding {
	for _, s := range in.steps {
		if s.held || s.Healed != evidence.AtOnce || s.Restless || len(s.Failed) == 0 || !in.expects(s.Name) {
			continue
		}
		return []Finding{in.finding(Diverged, s.Name, "an expectation of the scenario does not hold: "+s.Failed[0], nil)}
	}
	return nil
}

func (in *input) expects(name string) bool {
	for _, s := range in.ref.Scenario.Steps {
		if s.Name == name {
			return len(s.Expect) > 0
		}
	}
	return false
}

// ledgers compares the external resources with the reference.
func ledgers(in *input) []Finding {
	for _, s := range in.steps {
		if s.held || s.want.NoLedger || s.Ledger == nil {
			continue
		}
		got := canonicalLedger(s.Ledger)
		extra, missing := beyond(got, s.want.Ledger), beyond(s.want.Ledger, got)
		switch {
		case s.want.Counted && len(got) <= len(s.want.Ledger):
			continue
		case len(extra) > 0:
			f := in.finding(Leak, s.Name, "outside the cluster there is "+extra[0]+", which does not exist without the fault", nil)
			f.Detail = strings.Join(extra, "\n")
			f.ID = f.identity(f.Detail)
			return []Finding{f}
		case len(missing) > 0:
			f := in.finding(Diverged, s.Name, "outside the cluster "+missing[0]+" is missing", nil)
			f.Detail = strings.Join(missing, "\n")
			f.ID = f.identity(f.Detail)
			return []Finding{f}
		}
	}
	return nil
}

// beyond returns the lines that the first list contains more often than the second.
func beyond(a, b []string) []string {
	count := map[string]int{}
	for _, line := range b {
		count[line]++
	}
	var out []string
	for _, line := range a {
		if count[line]--; count[line] < 0 {
			out = append(out, line)
		}
	}
	return out
}
