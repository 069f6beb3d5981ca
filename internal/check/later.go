package check

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

const (
	// laterHorizons is the time, in horizons, after which a controller that needs help is considered
	// unable to recover on its own. With DefaultHorizon, it is 75 s. Many controllers reconcile
	// everything every 30 or 60 seconds, and some vary that interval by a tenth or more.
	laterHorizons = 5
	// laterRuns is the number of longer runs that are tried until one shows the symptom, or that the
	// controller recovers late. A race does not occur in every run.
	laterRuns = 3
	// laterSuites is the number of longer runs of a test suite, all of which must be clean.
	laterSuites = 2
)

// noTime is added to a finding if the budget leaves no time for a longer run.
const noTime = "; there was no time to wait for a regular reconcile of the controller, which may also repair it; increase --budget"

// recoversLater runs the fault of a finding again, without helping the controller for a long time. If the
// controller recovers on its own, recoversLater returns the remark that replaces the finding; otherwise
// nil. If an object stays wrong, no other object of its kind is given more time in the same scenario:
// regular work usually concerns all objects of a kind. An error does not matter, because the finding is
// confirmed by other runs.
func (s *suspicions) recoversLater(ctx context.Context, w *fleet.Worker, p plan.Planned, f *judge.Finding) *suspicion {
	later, key := s.laterTime(p), laterKey(p.Scenario, f)
	switch {
	case f.Verdict != judge.DivergedUntilRestart || s.Horizon <= 0 || s.stays(key):
		return nil
	case later < laterHorizons*s.Horizon/2:
		f.Sentence += noTime
		return nil
	}
	if r := s.lessons[p.Scenario].Reference; r != nil && r.Suite != nil {
		return s.suiteLater(ctx, w, p, *f, later)
	}
	for range laterRuns {
		out, err := w.Knock(ctx, s.lessons[p.Scenario], p.Fault, s.Seed, lab.Care{Tail: true, Later: later})
		if err != nil {
			return nil
		}
		s.tally.confirmed()
		if late, settled := s.later(p, f, out, later); settled {
			return late
		}
	}
	return nil
}

// lacksTime reports whether the budget leaves too little time to learn whether a controller recovers on its own from a
// fault. After a refusal, which a controller does not expect to end soon, it usually does: MarkdownView tries again after
// a minute. So a finding would be wrong.
func (s *suspicions) lacksTime(p plan.Planned) bool {
	return s.laterTime(p) < laterHorizons*s.Horizon
}

// isUseless reports whether a fault would probably show something that cannot be decided any more, as another refusal in
// the same scenario did.
func (s *suspicions) isUseless(p plan.Planned) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.Fault.Kind.Refuses() && s.unwaited[p.Scenario] && s.lacksTime(p)
}

// later decides what a longer run says about a finding. settled is false if the run does not show the symptom,
// which may be a race.
func (s *suspicions) later(p plan.Planned, f *judge.Finding, out *fleet.Outcome, later time.Duration) (late *suspicion, settled bool) {
	for _, other := range out.Findings {
		switch {
		case other.Verdict == judge.RecoveredLate && coversObjects(&other, f):
			other.Seed, other.Attempts, other.Reproduced = f.Seed, f.Attempts, f.Reproduced
			return &suspicion{p, other, out.Trace}, true
		case other.Same(*f):
			f.Sentence += " after " + later.String()
			f.RecoveredAfterSeconds, f.UnrecoveredSeconds = other.RecoveredAfterSeconds, other.UnrecoveredSeconds
			s.mu.Lock()
			s.lasting[laterKey(p.Scenario, f)] = true
			s.mu.Unlock()
			return nil, true
		}
	}
	return nil, false
}

// laterTime returns the time that a controller gets in a longer run: half of what is left of the budget, if that is
// less, because the finding must also be confirmed. After a refusal, the longer run comes first, and gets more.
func (s *suspicions) laterTime(p plan.Planned) time.Duration {
	later := laterHorizons * s.Horizon
	if s.Budget <= 0 {
		return later
	}
	left := s.Budget - time.Since(s.began)
	if p.Fault.Kind.Refuses() {
		return min(later, left*5/6)
	}
	return min(later, left/2)
}

// suiteLater does the same for a test suite, which just goes on if the controller recovers. A clean run
// may also be one in which the fault did no harm, so several must be clean, and the finding must have
// shown in every run before.
func (s *suspicions) suiteLater(ctx context.Context, w *fleet.Worker, p plan.Planned, f judge.Finding, later time.Duration) *suspicion {
	late, isLate := judge.SuiteWasLate(f)
	if !isLate || f.Reproduced < f.Attempts {
		return nil
	}
	var out *fleet.Outcome
	for range laterSuites {
		var err error
		if out, err = w.Knock(ctx, s.lessons[p.Scenario], p.Fault, s.Seed, lab.Care{Tail: true, Later: later}); err != nil {
			return nil
		}
		if s.tally.confirmed(); !isClean(out) {
			return nil
		}
	}
	return &suspicion{p, late, out.Trace}
}

// stays reports whether an object of the same kind has stayed wrong in the same scenario.
func (s *suspicions) stays(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lasting[key]
}

// likelyLate reports whether the controller probably recovers on its own: after a refusal, which a controller
// does not expect to end soon, or if it recovered late from another fault in the same scenario. Then the
// longer run comes first, because if it confirms this, the finding itself need not be confirmed. The runs of a
// test suite prove less, so they come last.
func (s *suspicions) likelyLate(p plan.Planned) bool {
	if r := s.lessons[p.Scenario].Reference; r != nil && r.Suite != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.Fault.Kind.Refuses() || s.late[p.Scenario]
}

// isLate reports whether the controller recovers from a finding with the given key on its own. Then it adds the
// remark that replaces the finding. The runs that showed the finding count as clean, and a saved finding with the
// fault counts as fixed.
func (s *suspicions) isLate(ctx context.Context, w *fleet.Worker, p plan.Planned, f *judge.Finding, key string) bool {
	late := s.recoversLater(ctx, w, p, f)
	if late == nil {
		return false
	}
	s.mu.Lock()
	s.late[p.Scenario] = true
	s.mu.Unlock()
	s.tally.onlyLate(p)
	if s.foundBefore(p) {
		s.outcome.mu.Lock()
		s.result.Recovered = append(s.result.Recovered, p)
		s.outcome.mu.Unlock()
	}
	s.keep(key, late.finding, late.entries)
	return true
}

func laterKey(scenario string, f *judge.Finding) string {
	key := scenario
	for _, d := range f.Differences {
		kind, _, _ := strings.Cut(d.Object, " ")
		if !strings.Contains(key, "\x00"+kind) {
			key += "\x00" + kind
		}
	}
	return key
}

// coversObjects reports whether one finding concerns all objects of another. Which of their fields are wrong depends on
// when a run ends.
func coversObjects(one, other *judge.Finding) bool {
	return !slices.ContainsFunc(other.Differences, func(d state.Difference) bool {
		return !slices.ContainsFunc(one.Differences, func(o state.Difference) bool { return o.Object == d.Object })
	})
}
