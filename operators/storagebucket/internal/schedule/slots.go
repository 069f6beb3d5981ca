package schedule

import (
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// catchUp limits the time over which objects are spread if they would otherwise be due
// at the same moment: after the manager was down, or when parked objects wake.
const catchUp = 30 * time.Second

// untilSlot returns the time from now to the object's next slot: more than
// zero, and at most one interval. Callers add the result to a time with Go's monotonic
// reading, so a step of the wall clock does not stop the probes.
func untilSlot(now time.Time, uid types.UID, interval time.Duration) time.Duration {
	offset := Phase(uid, interval)
	sinceSlot := (now.UnixNano() - int64(offset)) % int64(interval)
	if sinceSlot < 0 {
		sinceSlot += int64(interval)
	}
	return interval - time.Duration(sinceSlot)
}

// spread returns the time until an object is due, if many objects may become due again together. An
// object whose next slot is within catchUp is due at that slot; any other object is due a multiple
// of catchUp before its slot, so that its first probe is not followed a moment later by the probe
// at the slot.
func spread(now time.Time, uid types.UID, interval time.Duration) time.Duration {
	return untilSlot(now, uid, interval) % min(interval+1, catchUp)
}

// Phase returns the offset of the object's slots in an interval. The offsets of all
// objects are spread evenly.
func Phase(uid types.UID, interval time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	return time.Duration(h.Sum64() % uint64(interval))
}

// Timeout returns the time limit of a probe: limit, but at most four fifths of the
// interval, so that the probe ends before the next slot even if the store hangs.
func Timeout(limit, interval time.Duration) time.Duration {
	return min(limit, interval/5*4)
}
