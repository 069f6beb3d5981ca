package lab

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// These constants limit the delays, which resemble the delays of a busy network or server.
const (
	minDelay = 5 * time.Millisecond // for each request in a slow run
	maxDelay = 12 * time.Millisecond
)

// jitter delays requests, including those to endpoints. Because of the delays, values that
// depend on timing differ between the reference runs, so the check learns that these
// differences are harmless. jitter delays every third request on average, but every request
// in a slow run, so that no measured time is the same in all runs.
type jitter struct {
	slow bool

	mu     sync.Mutex
	random *rand.Rand
}

func newJitter(seed uint64, n int) *jitter {
	return &jitter{slow: n == references-1, random: rand.New(rand.NewPCG(seed, uint64(n)))}
}

// Decide delays the request or leaves it alone.
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
		return minDelay + time.Duration(j.random.Int64N(int64(maxDelay-minDelay)))
	case j.random.IntN(3) == 0:
		return 1 + time.Duration(j.random.Int64N(int64(maxDelay)))
	}
	return 0
}
