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
)

// laterHorizons is the time, in horizons, after which a controller that needs help is considered
// unable to recover on its own. With DefaultHorizon, it is 75 s. Many controllers reconcile everything
// every 30 or 60 seconds, and some vary that interval by a tenth or more.
const laterHorizons = 5

// recoversLater runs the fault of a finding once more, without helping the controller for a long
// time. If the controller recovers on its own, recoversLater returns the remark that replaces the
// finding; otherwise nil. A longer wait is tried once for each kind of object and scenario: regular
// work usually concerns all objects of a kind.
func (s *suspicions) recoversLater(ctx context.Context, w *fleet.Worker, p plan.Planned, f judge.Finding) (*suspicion, error) {
	later, key := laterHorizons*s.Horizon, laterKey(p.Scenario, f)
	if f.Verdict != judge.DivergedUntilRestart || s.stays(key) || s.Budget > 0 && time.Since(s.began)+2*later > s.Budget {
		return nil, nil
	}
	out, err := w.Knock(ctx, s.lessons[p.Scenario], p.Fault, s.Seed, lab.Care{Tail: true, Later: later})
	if err != nil {
		return nil, err
	}
	s.tally.confirmed()
	if r := s.lessons[p.Scenario].Reference; r != nil && r.Suite != nil && isClean(out) {
		return &suspicion{p, judge.SuiteWasLate(f), out.Trace}, nil
	}
	i := slices.IndexFunc(out.Findings, func(other judge.Finding) bool {
		return other.Verdict == judge.RecoveredLate && slices.Equal(places(other), places(f))
	})
	if i >= 0 {
		late := out.Findings[i]
		late.Seed, late.Attempts, late.Reproduced = f.Seed, f.Attempts, f.Reproduced
		return &suspicion{p, late, out.Trace}, nil
	}
	if slices.ContainsFunc(out.Findings, func(other judge.Finding) bool { return other.Same(f) }) {
		s.mu.Lock()
		s.lasting[key] = true
		s.mu.Unlock()
	}
	return nil, nil
}

// stays reports whether an object of the same kind has stayed wrong in the same scenario.
func (s *suspicions) stays(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lasting[key]
}

func laterKey(scenario string, f judge.Finding) string {
	key := scenario
	for _, d := range f.Differences {
		kind, _, _ := strings.Cut(d.Object, " ")
		if !strings.Contains(key, "\x00"+kind) {
			key += "\x00" + kind
		}
	}
	return key
}

// places returns the objects and fields of a finding.
func places(f judge.Finding) (places []string) {
	for _, d := range f.Differences {
		places = append(places, d.Object+"\x00"+d.Path)
	}
	return places
}
