package check

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const (
	// wanted is how many runs of the same fault have to show a finding, the first
	// one counted, of at most mostAttempts: what depends on a race does not show
	// every time, on a busy machine least of all.
	wanted, mostAttempts = 3, 5
	// controls is how many runs without the fault must not.
	controls = 2
)

// suspicions are what looks wrong. Each is run again before it is a finding. What
// looks the same as one that is known, or that is just being confirmed, is not.
type suspicions struct {
	check  *check
	enough func()

	mu    sync.Mutex
	alike map[string]*alike
	found []judge.Finding
}

// A suspicion is what one fault showed.
type suspicion struct {
	planned plan.Planned
	finding judge.Finding
	entries []trace.Entry
}

// alike are the faults that show the same: one of them is being confirmed, or was,
// and the others wait for what comes of it.
type alike struct {
	confirmed bool
	others    []suspicion
}

// try runs one fault, and again if something looks wrong.
func (s *suspicions) try(ctx context.Context, w *worker, p plan.Planned) error {
	c := s.check
	began := time.Now()
	out, err := w.knock(ctx, c.lessons[p.Scenario], p.Fault, c.Seed)
	if err != nil {
		return err
	}
	c.tally.ran(p, out)
	c.Observer.Done(p.Fault.Kind, time.Since(began))
	for _, f := range out.Findings {
		if err := s.pursue(ctx, w, suspicion{p, f, out.Trace}); err != nil {
			return err
		}
	}
	return nil
}

// pursue has a suspicion confirmed, unless one that looks the same is. If it does
// not show again, it is the turn of the next that looks the same: what one fault
// shows only now and then, another may show every time.
func (s *suspicions) pursue(ctx context.Context, w *worker, next suspicion) error {
	key := likeness(next.finding)
	for mine := s.first(key, next); mine; next, mine = s.next(key) {
		confirmed, err := s.confirm(ctx, w, next)
		if err != nil || confirmed {
			return err
		}
	}
	return nil
}

// confirm runs the fault again, and makes a finding of what shows again.
func (s *suspicions) confirm(ctx context.Context, w *worker, like suspicion) (bool, error) {
	c, p, f := s.check, like.planned, like.finding
	f.Seed, f.Attempts, f.Reproduced = c.Seed, 1, 1
	for f.Reproduced < wanted && wanted-f.Reproduced <= mostAttempts-f.Attempts {
		out, err := w.knock(ctx, c.lessons[p.Scenario], p.Fault, c.Seed)
		if err != nil {
			return false, err
		}
		c.tally.confirmed()
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
		c.doubtful(like, f, fmt.Sprintf("%s showed in %d of %d runs", verdict, f.Reproduced, f.Attempts))
		return false, nil
	}
	alone, err := s.alone(ctx, w, p.Scenario, f)
	if err != nil {
		return false, err
	}
	if alone != "" {
		c.doubtful(like, f, fmt.Sprintf("%s showed, but without any fault %s", verdict, alone))
		return false, nil
	}
	s.keep(f, like.entries)
	return true, nil
}

// alone says what shows also in runs without the fault, if anything does: what
// three runs happened to have in common may be different in the next.
func (s *suspicions) alone(ctx context.Context, w *worker, scenario string, f judge.Finding) (string, error) {
	c := s.check
	for n := range controls {
		out, err := w.control(ctx, c.lessons[scenario], c.Seed+uint64(n)+1)
		if err != nil {
			return "", err
		}
		c.tally.confirmed()
		if out.Inconclusive != "" {
			return out.Inconclusive, nil
		}
		for _, other := range out.Findings {
			if likeness(other) == likeness(f) {
				return "it showed too", nil
			}
		}
	}
	return "", nil
}

func (s *suspicions) keep(f judge.Finding, entries []trace.Entry) {
	c := s.check
	f.FoundAfterRuns, f.FoundAfterSeconds = c.tally.runs(), time.Since(c.began).Seconds()
	s.mu.Lock()
	same := s.alike[likeness(f)]
	same.confirmed = true
	f.AlsoBy = len(same.others)
	s.found = append(s.found, f)
	s.mu.Unlock()
	c.kept(f, entries)
	if c.StopAtFirst {
		s.enough()
	}
}

// first says whether nothing like it has been seen, and notes it otherwise.
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

// next is another that looks like one which did not show again; without any, it is
// forgotten.
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

// likeness is the same for findings that a person would take for one: the verdict
// and what differs, whatever was done to bring it about.
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
