package rest

import (
	"time"

	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// fullRound is how often a controller makes the same request until it has certainly made a full round: the first may belong
// to a round that began before, and from the second to the third, everything is done once.
const fullRound = 3

// Round reports whether a controller has made a full round of its work since the given time after the start of the trace,
// and when it last asked for anything, or zero. A controller that reads only from its cache may make rounds without a request.
func Round(entries []trace.Entry, since time.Duration) (full bool, asked time.Duration) {
	type call struct {
		verb   string
		target trace.Target
	}
	made := map[call]int{}
	for i := len(entries) - 1; i >= 0 && entries[i].At >= since; i-- {
		e := &entries[i]
		if e.Call == nil || e.Instance == "" || e.Call.Verb == "watch" || e.Call.Target.Resource == "" || request.IsBookkeeping(e.Call) {
			continue
		}
		asked = max(asked, e.At)
		same := call{e.Call.Verb, e.Call.Target}
		if made[same]++; made[same] >= fullRound {
			full = true
		}
	}
	return full, asked
}
