package schedule

import (
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// catchUp is the longest time over which objects are spread that would otherwise be
// due at the same moment: those whose slot passed while no manager was running, and
// those that were parked.
const catchUp = 30 * time.Second

// untilSlot returns the time from now to the object's next slot: more than
// zero, and at most one interval. The result is added to a time with Go's
// monotonic reading, so a step of the wall clock does not stop the probes.
func untilSlot(now time.Time, uid types.UID, interval time.Duration) time.Duration {
	offset := Phase(uid, interval)
	sinceSlot := (now.UnixNano() - int64(offset)) % int64(interval)
	if sinceSlot < 0 {
		sinceSlot += int64(interval)
	}
	return interval - time.Duration(sinceSlot)
}

// spread returns the time until an object is due that comes back together with
// others: its own slot if that is soon enough, otherwise a multiple of the
// window before its slot. So no object is probed because it came back, and
// again right after because of its slot.
func spread(now time.Time, uid types.UID, interval time.Duration) time.Duration {
	return untilSlot(now, uid, interval) % min(interval+1, catchUp)
}

// Phase returns the object's own offset in an interval; over all UIDs, the
// offsets are spread evenly.
func Phase(uid types.UID, interval time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	return time.Duration(h.Sum64() % uint64(interval))
}

// Timeout returns the time limit of a probe if probes are interval apart: limit,
// or four fifths of the interval if that is less, so that the probe of a store
// that hangs ends before the next slot.
func Timeout(limit, interval time.Duration) time.Duration {
	return min(limit, interval/5*4)
}
