package check

import (
	"context"
	"slices"
	"sync"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
)

// idle lends labs to the confirmation of findings once the labs have no fault left to run.
//
//	a lab that confirms ──together──▶ offers ──assist──▶ a lab without faults
type idle struct {
	offers chan func(context.Context, *fleet.Worker)

	mu      sync.Mutex
	busy    int           // the number of labs that run a fault or confirm a finding
	allIdle chan struct{} // closed while busy is 0
}

func newIdle() *idle {
	i := &idle{offers: make(chan func(context.Context, *fleet.Worker)), allIdle: make(chan struct{})}
	close(i.allIdle)
	return i
}

// work counts a lab as busy until the returned function is called.
func (i *idle) work() (end func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.busy++; i.busy == 1 {
		i.allIdle = make(chan struct{})
	}
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.busy--; i.busy == 0 {
			close(i.allIdle)
		}
	}
}

// over returns a channel that is closed while no lab is busy.
func (i *idle) over() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.allIdle
}

// assist makes the runs that other labs offer, until no other lab is busy.
func (i *idle) assist(ctx context.Context, w *fleet.Worker) {
	for !w.GivenUp() {
		select {
		case run := <-i.offers:
			run(ctx, w)
		case <-i.over():
			return
		case <-ctx.Done():
			return
		}
	}
}

// together makes a run on the lab w and at the same time up to most-1 more on labs that are
// idle. It returns the outcomes of all these runs.
func (i *idle) together(ctx context.Context, w *fleet.Worker, most int, run func(ctx context.Context, w *fleet.Worker, k int) (*fleet.Outcome, error)) ([]*fleet.Outcome, error) {
	outs, errs := make([]*fleet.Outcome, most), make([]error, most)
	var lent sync.WaitGroup
	lend := func(k int) bool {
		lent.Add(1)
		select {
		case i.offers <- func(ctx context.Context, w *fleet.Worker) {
			defer lent.Done()
			outs[k], errs[k] = run(ctx, w, k)
		}:
			return true
		default:
			lent.Done()
			return false
		}
	}
	n := 1
	for n < most && lend(n) {
		n++
	}
	outs[0], errs[0] = run(ctx, w, 0)
	lent.Wait()
	if k := slices.IndexFunc(errs, func(err error) bool { return err != nil }); k >= 0 {
		return nil, errs[k]
	}
	return outs[:n], nil
}
