package s3store

import (
	"sync"
	"time"
)

const (
	// clearedFor is the time for which the name of a host behind a proxy is not looked
	// up again. The look-up is only an additional check, because the proxy resolves the
	// name itself.
	clearedFor = time.Minute

	// maxCleared limits the number of names kept. There are many names only
	// if buckets are addressed in the host name.
	maxCleared = 1 << 14
)

// verdicts remembers for a while which hosts are allowed, so that not every request
// needs a look-up. The zero value is ready to use.
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
