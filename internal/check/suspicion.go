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

// confirmations is how many more runs of the same fault a finding has to stand,
// and mostMissed how many of them may show nothing.
const (
	confirmations = 2
	mostMissed    = 0
)

// suspicions are what looks wrong. Each is run again before it is a finding; what
// looks the same as one that is known is not.
type suspicions struct {
	check  *check
	enough func()

	mu    sync.Mutex
	known map[string]bool
	found []judge.Finding
}

// try runs one fault, and again if something looks wrong.
func (s *suspicions) try(ctx context.Context, w *worker, p plan.Planned) error {
	c := s.check
	l := c.lessons[p.Scenario]
	began := time.Now()
	out, err := w.knock(ctx, l, p.Fault, c.Seed)
	if err != nil {
		return err
	}
	c.tally.ran(p, out)
	c.Observer.Done(p.Fault.Kind, time.Since(began))
	for _, f := range out.Findings {
		if !s.first(f) {
			s.again(f)
			continue
		}
		if err := s.confirm(ctx, w, p, f, out.Trace); err != nil {
			return err
		}
	}
	return nil
}

// confirm runs the fault again, and makes a finding of what shows again.
func (s *suspicions) confirm(ctx context.Context, w *worker, p plan.Planned, f judge.Finding, entries []trace.Entry) error {
	c := s.check
	f.Seed, f.Attempts, f.Reproduced = c.Seed, 1, 1
	for range confirmations {
		out, err := w.knock(ctx, c.lessons[p.Scenario], p.Fault, c.Seed)
		if err != nil {
			return err
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
	if f.Attempts-f.Reproduced > mostMissed {
		c.tally.doubtful(p, fmt.Sprintf("%s showed in %d of %d runs", strings.ToLower(string(f.Verdict)), f.Reproduced, f.Attempts))
		return nil
	}
	s.keep(f, entries)
	return nil
}

func (s *suspicions) keep(f judge.Finding, entries []trace.Entry) {
	c := s.check
	f.FoundAfterRuns, f.FoundAfterSeconds = c.tally.runs(), time.Since(c.began).Seconds()
	s.mu.Lock()
	s.found = append(s.found, f)
	s.mu.Unlock()
	c.kept(f, entries)
	if c.StopAtFirst {
		s.enough()
	}
}

// first says whether nothing like it has been seen.
func (s *suspicions) first(f judge.Finding) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]bool{}
	}
	key := likeness(f)
	seen := s.known[key]
	s.known[key] = true
	return !seen
}

// again counts one more fault that shows a known finding.
func (s *suspicions) again(f judge.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.found {
		if likeness(s.found[i]) == likeness(f) {
			s.found[i].AlsoBy++
		}
	}
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
