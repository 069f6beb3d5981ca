package rest

import (
	"net/http"
	"time"

	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const (
	// RetryMargin is the time by which a retry may be late on a busy machine.
	RetryMargin = 2 * time.Second
	// longestPause is the longest pause before a retry that is worth waiting for.
	longestPause = time.Minute
)

// call identifies equal requests.
type call struct {
	verb   string
	target trace.Target
}

// RetryDue returns the time, since the start of the trace, until which the controller may be
// waiting before it repeats a write that has failed at least twice; or 0 if there is no such write.
// A work queue doubles its pause after each failure, and forgets it after a success. client-go's
// usual queue begins with 5 ms, but some controllers begin with a second.
func RetryDue(entries []trace.Entry) (due time.Duration) {
	last, before := map[call]time.Duration{}, map[call]time.Duration{}
	for _, e := range entries {
		if e.Call == nil || e.Instance == "" || !request.IsWork(e.Call) || !request.IsWrite(e.Call) {
			continue
		}
		w := call{e.Call.Verb, e.Call.Target}
		if e.Call.Code != 0 && e.Call.Code < http.StatusBadRequest {
			delete(last, w)
			delete(before, w)
			continue
		}
		if at, failed := last[w]; failed {
			before[w] = at
		}
		last[w] = e.At
	}
	for w, first := range before {
		due = max(due, last[w]+min(2*(last[w]-first), longestPause)+RetryMargin)
	}
	return due
}
