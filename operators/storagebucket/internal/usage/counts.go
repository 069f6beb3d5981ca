package usage

import (
	"context"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

// counts keeps each count for a while, because stores charge for each page of a listing:
// a client that repeats its requests must not cause high costs. Failures are not kept.
// The zero value is ready to use.
type counts struct {
	// turns lets one request count a bucket while the others wait for the result.
	turns gates

	mu     sync.Mutex
	kept   map[string]count
	pruned time.Time
}

// count is the result of counting a bucket.
type count struct {
	usage s3store.Usage
	at    time.Time
}

// get returns the kept count of the bucket, or counts again if there is none that is
// recent enough.
func (c *counts) get(ctx context.Context, bucket string, maxAge time.Duration, measure func() (s3store.Usage, error)) (count, error) {
	leave, err := c.turns.enter(ctx, bucket, 1)
	if err != nil {
		return count{at: time.Now()}, err
	}
	defer leave()
	if last, ok := c.recent(bucket, maxAge); ok {
		return last, nil
	}
	usage, err := measure()
	now := count{usage: usage, at: time.Now()}
	if err == nil && maxAge > 0 {
		c.keep(bucket, now, maxAge)
	}
	return now, err
}

func (c *counts) recent(bucket string, maxAge time.Duration) (count, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.kept[bucket]
	return last, ok && time.Since(last.at) < maxAge
}

// keep stores a count. It also drops counts that are too old, at most once per maxAge.
func (c *counts) keep(bucket string, now count, maxAge time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[string]count{}
	}
	if now.at.Sub(c.pruned) >= maxAge {
		for name, last := range c.kept {
			if now.at.Sub(last.at) >= maxAge {
				delete(c.kept, name)
			}
		}
		c.pruned = now.at
	}
	c.kept[bucket] = now
}
