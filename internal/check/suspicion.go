package check

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const (
	// wanted is the number of runs of the same fault that must show a finding, out of at
	// most maxAttempts. wanted and maxAttempts include the first run. Not every run has to
	// show the finding, because a race does not occur every time, especially on a busy
	// machine.
	wanted, maxAttempts = 3, 5
	// controls is the number of runs without the fault, none of which may show the finding.
	controls = 2
)

// suspicions turns suspicions into findings by running their faults again. It skips a
// suspicion that resembles a confirmed finding, and defers one that resembles a suspicion
// being confirmed.
type suspicions struct {
	*outcome
	enough func() // ends the check

	mu    sync.Mutex
	alike map[string]*alike
	found []judge.Finding
}

// A suspicion is an unconfirmed finding of one run.
type suspicion struct {
	planned plan.Planned
	finding judge.Finding
	entries []trace.Entry
}

// alike is a group of suspicions with the same symptom: one suspicion is being confirmed or
// has been confirmed, and the others wait for the result.
type alike struct {
	confirmed bool
	others    []suspicion
}

// try runs a scenario with one fault, and pursues each finding of that run. tail is passed
// to the lab.
func (s *suspicions) try(ctx context.Context, w *fleet.Worker, p plan.Planned, tail bool) error {
	began := time.Now()
	out, err := w.Knock(ctx, s.lessons[p.Scenario], p.Fault, s.Seed, tail)
	if err != nil {
		return err
	}
	s.tally.ran(p, out)
	s.needed(out.Used)
	s.Observer.Done(p.Fault.Kind, time.Since(began))
	for _, f := range out.Findings {
		if err := s.pursue(ctx, w, suspicion{p, f, out.Trace}); err != nil {
			return err
		}
	}
	return nil
}

// pursue tries to confirm a suspicion, unless a similar one has been or is being
// confirmed. If the attempt fails, pursue tries the next similar suspicion, because one
// fault may cause a symptom only now and then, while another fault causes it every time.
func (s *suspicions) pursue(ctx context.Context, w *fleet.Worker, next suspicion) error {
	key := likeness(next.finding)
	for mine := s.first(key, next); mine; next, mine = s.next(key) {
		confirmed, err := s.confirm(ctx, w, next)
		if err != nil || confirmed {
			return err
		}
	}
	return nil
}

// confirm runs the fault of a suspicion again and reports whether the finding is
// confirmed.
func (s *suspicions) confirm(ctx context.Context, w *fleet.Worker, like suspicion) (bool, error) {
	p, f := like.planned, like.finding
	f.Seed, f.Attempts, f.Reproduced = s.Seed, 1, 1
	for f.Reproduced < wanted && wanted-f.Reproduced <= maxAttempts-f.Attempts {
		out, err := w.Knock(ctx, s.lessons[p.Scenario], p.Fault, s.Seed, true)
		if err != nil {
			return false, err
		}
		s.tally.confirmed()
		f.Attempts++
		for _, other := range out.Findings {
			if other.Same(f) {
				f.Reproduced++
				break
			}
		}
	}
	verdict := strings.ToLower(string(f.Verdict))
	if f.Reproduced < wanted {
		s.doubtful(p, like.entries, f, fmt.Sprintf("%s was found in %d of %d runs", verdict, f.Reproduced, f.Attempts))
		return false, nil
	}
	alone, err := s.withoutFault(ctx, w, p.Scenario, f)
	if err != nil {
		return false, err
	}
	if alone != "" {
		s.doubtful(p, like.entries, f, fmt.Sprintf("%s was found, but %s", verdict, alone))
		return false, nil
	}
	s.keep(f, like.entries)
	return true, nil
}

// withoutFault runs the scenario without the fault. It returns a reason to doubt the finding, or
// "". These control runs are necessary, because the three reference runs may have been
// equal by chance.
func (s *suspicions) withoutFault(ctx context.Context, w *fleet.Worker, scenario string, f judge.Finding) (string, error) {
	for n := range controls {
		out, err := w.Control(ctx, s.lessons[scenario], s.Seed+uint64(n)+1)
		if err != nil {
			return "", err
		}
		s.tally.confirmed()
		if out.Inconclusive != "" {
			return "a run without any fault was inconclusive: " + out.Inconclusive, nil
		}
		for _, other := range out.Findings {
			if likeness(other) == likeness(f) {
				return "also without any fault", nil
			}
		}
	}
	return "", nil
}

func (s *suspicions) keep(f judge.Finding, entries []trace.Entry) {
	f.FoundAfterRuns, f.FoundAfterSeconds = s.tally.runs(), time.Since(s.began).Seconds()
	s.mu.Lock()
	same := s.alike[likeness(f)]
	same.confirmed = true
	f.AlsoBy = len(same.others)
	s.found = append(s.found, f)
	s.mu.Unlock()
	s.kept(f, entries)
	if s.StopAtFirst {
		s.enough()
	}
}

// first reports whether a suspicion is the first one with the key. A later suspicion is
// only counted if the first one has been confirmed; otherwise, it is queued behind the
// first one.
func (s *suspicions) first(key string, like suspicion) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alike == nil {
		s.alike = map[string]*alike{}
	}
	same := s.alike[key]
	if same == nil {
		s.alike[key] = &alike{}
		return true
	}
	if !same.confirmed {
		same.others = append(same.others, like)
		return false
	}
	for i := range s.found {
		if likeness(s.found[i]) == key {
			s.found[i].AlsoBy++
		}
	}
	return false
}

// next returns the next suspicion with the key, after the previous one was not confirmed.
// If no suspicion is left, next deletes the group.
func (s *suspicions) next(key string) (suspicion, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := s.alike[key]
	if len(same.others) == 0 {
		delete(s.alike, key)
		return suspicion{}, false
	}
	like := same.others[0]
	same.others = same.others[1:]
	return like, true
}

// likeness returns the same key for findings that a user would consider the same. The key
// depends on the verdict and the differences, but not on the fault.
func likeness(f judge.Finding) string {
	parts := []string{string(f.Verdict)}
	for _, d := range f.Differences {
		parts = append(parts, d.Object, d.Path)
	}
	if len(f.Differences) == 0 {
		parts = append(parts, f.Scenario, f.Step)
	}
	return strings.Join(parts, "\x00")
}
