package fleet

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Work is a number of calls that the labs share and make concurrently.
type Work struct {
	// Calls is the number of calls. Do makes the call i, once for each i from 0 to Calls-1. The first error
	// cancels the calls that are left.
	Calls int
	Do    func(ctx context.Context, w *Worker, i int) error
	// Then is called for each lab as soon as no call is left for it. It may be nil.
	Then func(ctx context.Context, w *Worker)
	// Most returns the largest number of labs that is worth its memory and starts while so many calls are
	// left. With it, the number of labs that work follows the load of the machine, and labs are started
	// as needed. Without it, all labs work, and no lab is started.
	Most func(left int) int
	// Fewest is the number of labs that work even on an overloaded machine.
	Fewest int
}

const (
	// window is the time over which the load is measured before the number of labs is changed. Most runs
	// are shorter.
	window = 5 * time.Second
	// room is the busy share of the processors up to which one lab more works, and overload the share
	// above which one lab less works. In the whole plan of StorageBucket on two processors, four labs ran
	// 88 faults a minute at a share of 0.76, five ran 110 at 0.90, and seven ran 120 at 0.95.
	room, overload = 0.92, 0.97
	// mostlyIdle is the share up to which twice as many labs work: even with the starts of the new ones, there is
	// room for all of them.
	mostlyIdle = room / 4
)

// shift is work in progress. The first labs work, as many as the load of the machine allows, and the others
// wait:
//
//	labs   1   2   3 │  4   5  │
//	        working  │ waiting │ not started
type shift struct {
	Work
	fleet *Fleet
	group *errgroup.Group
	over  context.CancelFunc // called when no call is left to begin, or no lab to make it

	mu      sync.Mutex
	changed sync.Cond // what follows has changed
	begun   int       // calls
	joined  int       // labs
	left    int       // labs that have left again
	working int       // the labs before this position may work
}

// Share makes all calls of the work. If all labs were given up before that, it returns an ExhaustedError.
func (f *Fleet) Share(ctx context.Context, work Work) error {
	workers := f.all()
	group, ctx := errgroup.WithContext(ctx)
	inWork, over := context.WithCancel(ctx)
	defer over()
	s := &shift{Work: work, fleet: f, group: group, over: over, working: len(workers)}
	s.changed.L = &s.mu
	defer context.AfterFunc(ctx, s.wake)()
	for _, w := range workers {
		s.join(ctx, w)
	}
	if s.Most != nil && len(workers) > 0 {
		group.Go(func() error { s.adapt(ctx, inWork); return nil })
	}
	if err := group.Wait(); err != nil || s.begun >= s.Calls {
		return err
	}
	return f.exhausted()
}

// join lets a lab take part.
func (s *shift) join(ctx context.Context, w *Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	position := s.joined
	s.joined++
	s.group.Go(func() error {
		defer s.leave(w)
		return s.take(ctx, w, position)
	})
}

// take makes calls on a lab until none is left, or the lab is given up.
func (s *shift) take(ctx context.Context, w *Worker, position int) error {
	for w.givenUp == nil {
		i, ok := s.next(ctx, position)
		switch {
		case ok && ctx.Err() != nil:
			return context.Cause(ctx)
		case !ok && s.Then != nil:
			s.Then(ctx, w)
			return nil
		case !ok:
			return nil
		}
		if err := s.Do(ctx, w, i); err != nil {
			return err
		}
	}
	return nil
}

// next returns the next call for a lab, and whether there is one. It waits while the lab is not to work and
// ctx has not ended.
func (s *shift) next(ctx context.Context, position int) (i int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.begun < s.Calls && position >= s.working && ctx.Err() == nil {
		s.changed.Wait()
	}
	if s.begun >= s.Calls {
		return 0, false
	}
	i = s.begun
	if s.begun++; s.begun == s.Calls {
		s.over()
		s.changed.Broadcast()
	}
	return i, true
}

// leave ends the part of a lab. If the lab was given up, another one may work in its place.
func (s *shift) leave(w *Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left++; s.left == s.joined {
		s.over()
	}
	if w.givenUp != nil {
		s.working++
		s.changed.Broadcast()
	}
}

func (s *shift) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

// adapt changes the number of labs that work, as the load of the machine demands, until inWork ends. If a lab
// cannot be started, those that run are enough, and their number stays.
func (s *shift) adapt(ctx, inWork context.Context) {
	for {
		busy, known := s.fleet.load(inWork)
		if !known {
			return
		}
		s.mu.Lock()
		now, left := s.working, s.Calls-s.begun
		s.mu.Unlock()
		n := advise(busy, now, max(s.Fewest, 1), s.Most(left)) // Most reads /proc, while other labs take calls
		err := s.fleet.Grow(inWork, n)
		workers := s.fleet.all()
		for _, w := range workers[s.joined:] {
			s.join(ctx, w)
		}
		if err != nil || len(workers) < n {
			return
		}
		s.mu.Lock()
		s.working += n - now // meanwhile, leave may have changed it as well
		s.changed.Broadcast()
		s.mu.Unlock()
	}
}

// advise returns the number of labs that should work next, given the busy share of the processors while
// some labs worked. While the processors are mostly idle, their number doubles.
func advise(busy float64, working, fewest, most int) int {
	switch {
	case busy > overload && working > fewest:
		return working - 1
	case busy <= mostlyIdle:
		return min(2*working, max(most, working))
	case busy*float64(working+1)/float64(working) <= room && working < most:
		return working + 1
	}
	return working
}
