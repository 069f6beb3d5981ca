package lab

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// mostJitter is how much later a request may come, one in three: as much as a
// busy network or a busy server makes of it.
const mostJitter = 12 * time.Millisecond

// jitter delays requests, so that what depends on timing differs between
// reference runs and is learnt to be harmless.
type jitter struct {
	mu     sync.Mutex
	random *rand.Rand
}

func newJitter(random *rand.Rand) *jitter { return &jitter{random: random} }

// Decide delays a request, or does nothing.
func (j *jitter) Decide(*trace.Call) apiproxy.Action {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.random.IntN(3) > 0 {
		return apiproxy.Action{}
	}
	delay := time.Duration(j.random.Int64N(int64(mostJitter)))
	return apiproxy.Action{Before: func(ctx context.Context) error {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
		return nil
	}}
}
