package check

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

const (
	// longestMark is the longest time for which a controller must write nothing, so that the texts of
	// fields which are changed together are regarded as missing. Some controllers wait for ten seconds for
	// a connection to a Pod before they go on. shortestMark is the shortest such time.
	longestMark, shortestMark = 12 * time.Second, 5 * time.Second
	// togetherShare is the part of the time for trials in which fields are changed together.
	togetherShare = 3
)

// divided returns the trials of fields that are changed together, and those of single fields, without those
// that only confirm others. The first two are left out with shards, because the last may be in other shards.
func (c *check) divided() (marks, bare, first []*scenario.Trials) {
	for _, one := range c.Trials {
		switch {
		case one.Again:
		case one.Alone():
			first = append(first, one)
		case c.Shards > 1:
		case one.Marks():
			marks = append(marks, one)
		default:
			bare = append(bare, one)
		}
	}
	return marks, bare, first
}

// screening collects what changes of several fields at once show about each of them.
type screening struct {
	*trial
	until time.Time
	quiet time.Duration // for which the controller must write nothing, so that a text is regarded as missing

	mu       sync.Mutex
	outcomes map[string]inputs.Outcome // of fields with a text of their own, by inputs.Key
	shown    map[string]inputs.Tried   // what needs no trial of its own before it is confirmed, by inputs.Key
}

// screen changes all labels and annotations of a sample at once, and leaves much of it empty or out at once. Where
// that shows all that a trial of the field alone would show, there is no such trial. Where it may show a bug, the
// field is tried alone first.
func (t *trial) screen(ctx context.Context, marks, bare, first []*scenario.Trials) ([]*scenario.Trials, error) {
	share := time.Until(t.until) / togetherShare
	const steps = 3
	quiet := share * time.Duration(t.fleet.Len()) / time.Duration(steps*max(len(marks), 1))
	s := &screening{
		trial: t, until: time.Now().Add(share), quiet: min(max(quiet, shortestMark), longestMark),
		outcomes: map[string]inputs.Outcome{}, shown: map[string]inputs.Tried{},
	}
	err := t.share(ctx, len(marks)+len(bare), func(ctx context.Context, w *fleet.Worker, i int) error {
		if i < len(marks) {
			return s.mark(ctx, w, marks[i])
		}
		return s.hunt(ctx, w, bare[i-len(marks)])
	})
	if err != nil {
		return nil, err
	}
	return s.withoutShown(t.screened(first, s.outcomes)), nil
}

// mark changes the labels and annotations of a sample at once.
func (s *screening) mark(ctx context.Context, w *fleet.Worker, marks *scenario.Trials) error {
	if time.Now().After(s.until) {
		return nil
	}
	done, err := s.together(ctx, w, marks.Waiting(s.quiet), time.Until(s.trial.until))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range done {
		if done[n].Outcome == inputs.Kept {
			s.shown[inputs.Key(marks, n)] = done[n]
		} else {
			s.outcomes[inputs.Key(marks, n)] = done[n].Outcome
		}
	}
	return nil
}

// together makes trials that share their steps. It returns no outcomes if they could not be made: each field is
// tried alone later, which shows the same.
func (t *trial) together(ctx context.Context, w *fleet.Worker, of *scenario.Trials, within time.Duration) ([]inputs.Tried, error) {
	done, err := w.Try(ctx, of, t.windowOf(of), within, t.Seed)
	var failed *fleet.LabError
	var setup *fleet.SetupError
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &failed) || errors.As(err, &setup):
		return nil, nil
	}
	return done, err
}

// screened returns the trials that are left, those with a field that may have a bug first.
func (t *trial) screened(first []*scenario.Trials, outcomes map[string]inputs.Outcome) []*scenario.Trials {
	var before, after []*scenario.Trials
	for _, of := range first {
		left, done, suspicious := inputs.Screen(of, outcomes)
		for _, i := range done {
			t.add(of, i, []inputs.Tried{{Trial: of.Trials[i], Outcome: inputs.Effect}})
		}
		switch {
		case left == nil:
		case suspicious:
			before = append(before, left)
		default:
			after = append(after, left)
		}
	}
	return slices.Concat(before, after)
}

// withoutShown returns the trials that are left: what changes of several fields have shown is only repeated to confirm it.
func (s *screening) withoutShown(first []*scenario.Trials) (left []*scenario.Trials) {
	for _, of := range first {
		for i, one := range of.Trials {
			if shown, is := s.shown[inputs.Key(of, i)]; is {
				s.add(of, i, []inputs.Tried{{Trial: one, Outcome: shown.Outcome, Why: shown.Why}})
			}
		}
		some := of.Some(func(i int, _ *scenario.Trial) bool {
			_, is := s.shown[inputs.Key(of, i)]
			return !is
		})
		if some != nil {
			left = append(left, some)
		}
	}
	return left
}
