package judge

import (
	"fmt"
	"strconv"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// atOnce is how much later than the lease was taken a request may have begun and
// still have been on its way: between the two processes nothing is ordered.
const atOnce = 100 * time.Millisecond

// splitBrain finds writes of an instance that had held a Lease, after another one
// had taken it. That the new leader was faster, so that nothing was left to change
// or the write met a conflict, is luck.
func splitBrain(in *input) []Finding {
	if in.run.Fault == nil || in.run.Fault.Kind != fault.LoseLease {
		return nil
	}
	old, fresh, at := takeover(in.run)
	if fresh == "" {
		return nil
	}
	standby := map[trace.Target]bool{} // what is written without leading
	var writes []trace.Entry
	for i := range in.run.Entries {
		e := &in.run.Entries[i]
		if !isWrite(e) || !succeeded(e) && !conflicted(e) {
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
	f := in.finding(SplitBrain, in.faultyStep(), fmt.Sprintf("the old leader still writes %s, %s after another instance holds the Lease",
		in.request(writes[0].Call), rounded(writes[0].At-at)), nil)
	f.Detail = requests(writes)
	return []Finding{f}
}

// takeover is the first time that one instance takes a Lease that another one
// held: who had it, who has it, and when the taker was told so. If the old one
// gets it back, or holds another Lease still, there is none.
func takeover(run *evidence.Run) (old, fresh string, at time.Duration) {
	leases := map[int64]state.Change{}
	for _, c := range run.History.Changes {
		if c.Ref.Kind == "Lease" && c.After != nil && holder(c.After) != "" {
			leases[c.Revision] = c
		}
	}
	holds := map[state.Ref]string{} // the instance, by lease
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

func holder(lease state.Object) string {
	spec, _ := lease["spec"].(map[string]any)
	identity, _ := spec["holderIdentity"].(string)
	return identity
}

// leaseOf is the Lease that a request took or renewed for its sender.
func leaseOf(e *trace.Entry, leases map[int64]state.Change) (state.Ref, bool) {
	if e.Call == nil || e.Instance == "" || e.Call.Target.Resource != "leases" || !fault.IsWrite(e.Call) || !succeeded(e) {
		return state.Ref{}, false
	}
	revision, err := strconv.ParseInt(e.Call.ResourceVersion, 10, 64)
	c, ok := leases[revision]
	return c.Ref, err == nil && ok
}
