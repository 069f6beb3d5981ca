package rest

import (
	"time"

	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// fullRound is the number of equal requests after which a controller has certainly made a full round. The first may belong to
// a round that had begun before; between the second and the third, the controller has done everything once.
const fullRound = 3

// Round reports whether a controller has made a full round of its work since the given time after the start of the trace,
// and when it last asked for anything, or zero. A controller that reads only from its cache may make rounds without a request.
func Round(entries []trace.Entry, since time.Duration) (full bool, asked time.Duration) {
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
