package judge

import (
	"fmt"
	"strconv"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// atOnce is the grace period after a takeover. A request that the old holder begins in this period
// may already have been on its way, because the two processes are not synchronized.
const atOnce = 100 * time.Millisecond

// splitBrain finds writes that an instance made after another instance had taken its
// Lease. A write counts even if it changed nothing or got a conflict: it is mere luck
// that the new leader was faster.
func splitBrain(in *input) []Finding {
	if in.run.Fault == nil || in.run.Fault.Kind != fault.LoseLease {
		return nil
	}
	old, fresh, at := takeover(in.run)
	if fresh == "" {
		return nil
	}
	standby := map[trace.Target]bool{} // written by the new instance before it led
	var writes []trace.Entry
	for i := range in.run.Entries {
		e := &in.run.Entries[i]
		if !isWork(e) || !succeeded(e) && !conflicted(e) {
			continue
		}
		switch began := e.At - e.Call.Took; {
		case e.Instance == fresh && began < at:
			standby[e.Call.Target] = true
		case e.Instance == old && began > at+atOnce && !standby[e.Call.Target]:
			writes = append(writes, *e)
		}
	}
	if len(writes) == 0 {
		return nil
	}
	f := in.finding(SplitBrain, in.faultyStep(), fmt.Sprintf("the old leader still sends %s, %s after another instance took the Lease",
		in.request(writes[0].Call), rounded(writes[0].At-at)), nil)
	f.Request, f.Detail = in.request(writes[0].Call), requests(writes)
	return []Finding{f}
}

// takeover finds the first time that one instance takes a Lease from another. It returns
// the old holder, the new holder, and the time at which the new holder got its answer.
// There is no takeover if the old holder gets the Lease back, or still holds another Lease.
func takeover(run *evidence.Run) (old, fresh string, at time.Duration) {
	leases := map[int64]state.Change{}
	for _, c := range run.History.Changes {
		if c.After != nil && holder(c.Ref, c.After) != "" {
			leases[c.Revision] = c
		}
	}
	holds := map[state.Ref]string{} // the holding instance, by Lease
	for i := range run.Entries {
		e := &run.Entries[i]
		lease, ok := leaseOf(e, leases)
		if !ok {
			continue
		}
		before := holds[lease]
		holds[lease] = e.Instance
		switch {
		case before != "" && before != e.Instance && fresh == "":
			old, fresh, at = before, e.Instance, e.At
		case fresh != "" && e.Instance == old:
			return "", "", 0
		}
	}
	for _, instance := range holds {
		if instance == old {
			return "", "", 0
		}
	}
	return old, fresh, at
}

// holder returns the holder of a Lease or of another record of an election.
func holder(ref state.Ref, object state.Object) string {
	spec, _ := request.LeaseSpec(ref.GroupKind, object)
	identity, _ := spec["holderIdentity"].(string)
	return identity
}

// leaseOf returns the Lease, or the other record of an election, that a request took or renewed
// for its sender.
func leaseOf(e *trace.Entry, leases map[int64]state.Change) (state.Ref, bool) {
	if e.Call == nil || e.Instance == "" || !request.IsWrite(e.Call) || !succeeded(e) {
		return state.Ref{}, false
	}
	revision, err := strconv.ParseInt(e.Call.ResourceVersion, 10, 64)
	c, ok := leases[revision]
	return c.Ref, err == nil && ok
}
