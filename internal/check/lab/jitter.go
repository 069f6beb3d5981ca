package lab

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Delays of a request that a busy network or a busy server makes.
const (
	leastDelay = 5 * time.Millisecond // of each request of a slow run
	mostDelay  = 12 * time.Millisecond
)

// jitter delays requests, those at endpoints too, so that what depends on timing
// differs between reference runs and is learnt to be harmless: in one run one
// request in three, and in a slow one each, so that no measured time is the same
// in all of them.
type jitter struct {
	slow bool

	mu     sync.Mutex
	random *rand.Rand
}

func newJitter(seed uint64, n int) *jitter {
	return &jitter{slow: n == references-1, random: rand.New(rand.NewPCG(seed, uint64(n)))}
}

// Decide delays a request, or does nothing.
func (j *jitter) Decide(*trace.Call) apiproxy.Action {
	delay := j.delay()
	if delay == 0 {
		return apiproxy.Action{}
	}
	return apiproxy.Action{Before: func(ctx context.Context) error {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
		return nil
	}}
}

func (j *jitter) delay() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.slow:
		return leastDelay + time.Duration(j.random.Int64N(int64(mostDelay-leastDelay)))
	case j.random.IntN(3) == 0:
		return 1 + time.Duration(j.random.Int64N(int64(mostDelay)))
	}
	return 0
}
