package s3store

import (
	"sync"
	"time"
)

const (
	// clearedFor is the time for which a name behind a proxy is not looked up again:
	// the proxy resolves it itself in any case.
	clearedFor = time.Minute

	// maxCleared bounds the names kept; there are many only where buckets are
	// host names.
	maxCleared = 1 << 14
)

// verdicts remember for a while which hosts were found to be allowed, so that
// not every request means a look-up. The zero value is ready.
type verdicts struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (v *verdicts) has(host string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Now().Before(v.until[host])
}

func (v *verdicts) add(host string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.until == nil || len(v.until) >= maxCleared {
		v.until = map[string]time.Time{}
	}
	v.until[host] = time.Now().Add(clearedFor)
}
