package schedule

import (
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// catchUp is the longest time over which objects are spread that would
// otherwise be due at the same moment: those whose slot passed while no manager was
// running, and those that were parked.
const catchUp = 30 * time.Second

// untilSlot is the time from now to the object's next slot, more than zero and
// at most an interval. It is added to a time that carries Go's monotonic
// reading, so a step of the wall clock does not stop the probes.
func untilSlot(now time.Time, uid types.UID, interval time.Duration) time.Duration {
	offset := Phase(uid, interval)
	sinceSlot := (now.UnixNano() - int64(offset)) % int64(interval)
	if sinceSlot < 0 {
		sinceSlot += int64(interval)
	}
	return interval - time.Duration(sinceSlot)
}

// spread is the object's place among those that all come back now: its own slot
// where that comes soon enough, else a whole number of windows before it. So no
// object is probed for coming back and once more for its slot right after.
func spread(now time.Time, uid types.UID, interval time.Duration) time.Duration {
	return untilSlot(now, uid, interval) % min(interval+1, catchUp)
}

// Phase is an object's own place in an interval; over all UIDs they are spread
// evenly.
func Phase(uid types.UID, interval time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	return time.Duration(h.Sum64() % uint64(interval))
}

// Timeout returns the time limit of a probe when probes are interval apart: limit,
// or four fifths of the interval where that is less, so that a store that
// hangs has been judged before the next slot.
func Timeout(limit, interval time.Duration) time.Duration {
	return min(limit, interval/5*4)
}
