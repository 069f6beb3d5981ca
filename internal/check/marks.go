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
	// togetherShare is the part of the time for trials in which objects are left empty or out together.
	togetherShare = 3
)

// divided returns the trials of fields that are changed together, and those of single fields, without those
// that only confirm others. The first two are left out with shards, because the last may be in other shards.
func (c *check) divided() (marks, bare, alone []*scenario.Trials) {
	for _, one := range c.Trials {
		switch {
		case one.Again:
		case one.Alone():
			alone = append(alone, one)
		case c.Shards > 1:
		case one.Marks():
			marks = append(marks, one)
		default:
			bare = append(bare, one)
		}
	}
	return marks, bare, alone
}

// screening collects what changes of several fields at once show about each of them.
type screening struct {
	*trial
	until time.Time     // the end of the time for groups
	quiet time.Duration // for which the controller must write nothing, so that a text is regarded as missing

	mu    sync.Mutex
	shown map[string]triedInput // what needs no trial of its own, as a part of its group, by inputs.Key
	late  []*scenario.Trials    // groups of new objects for which there was no time
}

// screening returns the collector for the given number of trials of labels and annotations.
func (t *trial) screening(marks int) *screening {
	share := time.Until(t.until) / togetherShare
	const steps = 3
	quiet := share * time.Duration(t.fleet.Len()) / time.Duration(steps*max(marks, 1))
	return &screening{
		trial: t, until: time.Now().Add(share), quiet: min(max(quiet, shortestMark), longestMark), shown: map[string]triedInput{},
	}
}

// isSlow reports whether the controller seems to pause between its rounds, and may react only later.
func (t *trial) isSlow() bool { return t.stepTime() >= slowStep }

// paced returns the same trials of labels and annotations, with time for the texts to arrive: for a full round of a slow
// controller, and otherwise until nothing has been written for the given time.
func (t *trial) paced(marks *scenario.Trials, quiet time.Duration) *scenario.Trials {
	if all := &marks.Trials[0]; t.isSlow() {
		return marks.PatientIn(all.Step, all.Then, all.Undo)
	}
	return marks.Waiting(quiet)
}

// try makes all trials. First, all labels and annotations of a sample are changed at once, and much of it is left empty or
// out at once, while fields that are in no such group are changed alone. Then what the groups did not show is tried alone.
func (s *screening) try(ctx context.Context, marks, bare, alone []*scenario.Trials) error {
	grouped := map[string]bool{}
	for _, of := range slices.Concat(marks, bare) {
		for i := range of.Trials {
			grouped[inputs.Key(of, i)] = true
		}
	}
	first := slices.Concat(callsOf(marks, s.mark), callsOf(bare, s.hunt), callsOf(s.pieces(alone, func(key string) bool { return !grouped[key] }), s.all))
	s.Observer.Total(len(first))
	if err := s.callAll(ctx, first); err != nil {
		return err
	}
	s.settle(alone)
	left := func(key string) bool {
		_, shown := s.shown[key]
		return grouped[key] && !shown
	}
	rest := slices.Concat(callsOf(s.putOff(), s.hunt), callsOf(s.pieces(alone, left), s.all))
	s.Observer.Total(len(first) + len(rest))
	return s.callAll(ctx, rest)
}

// call is a part of the work of one lab.
type call func(context.Context, *fleet.Worker) error

// callsOf returns a call for each of the given values.
func callsOf[T any](all []T, do func(context.Context, *fleet.Worker, T) error) (calls []call) {
	for _, one := range all {
		calls = append(calls, func(ctx context.Context, w *fleet.Worker) error { return do(ctx, w, one) })
	}
	return calls
}

// callAll makes all calls, on all labs.
func (s *screening) callAll(ctx context.Context, calls []call) error {
	return s.share(ctx, len(calls), func(ctx context.Context, w *fleet.Worker, i int) error { return calls[i](ctx, w) })
}

// mark changes the labels and annotations of a sample at once.
func (s *screening) mark(ctx context.Context, w *fleet.Worker, marks *scenario.Trials) error {
	done, err := s.together(ctx, w, s.paced(marks, s.quiet), time.Until(s.trial.until))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range done {
		if done[n].Outcome != inputs.Unknown {
			s.shown[inputs.Key(marks, n)] = triedInput{Tried: done[n], of: marks, at: n}
		}
	}
	return nil
}

// settle adds what the groups have shown about single fields to the outcomes, as if the fields had been changed alone.
func (s *screening) settle(alone []*scenario.Trials) {
	for _, of := range alone {
		for i, one := range of.Trials {
			shown, is := s.shown[inputs.Key(of, i)]
			if !is {
				continue
			}
			d := triedInput{Tried: inputs.Tried{Trial: one, Outcome: shown.Outcome, Why: shown.Why}, of: of, at: i}
			if shown.of.Marks() {
				d.marks, d.number = shown.of, shown.at
			}
			s.tried = append(s.tried, d)
		}
	}
}

// putOff returns the groups for which there was no time. The fields that are tried alone may leave some.
func (s *screening) putOff() []*scenario.Trials {
	late := s.late
	s.until, s.late = s.trial.until, nil
	return late
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
