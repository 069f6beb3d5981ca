package judge

import (
	"fmt"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const (
	// fewestWrites is the number of equal writes at rest that count as a loop. fewestAfterFault is
	// the corresponding number in a run with a fault, in which the controller may have to catch up
	// with events.
	fewestWrites, fewestAfterFault = 3, 8
	// heartbeat and resync are rates in writes per second. A loop of effective writes is a
	// finding only if its rate is at least heartbeat. A loop of writes that change nothing,
	// such as an apply at each resync, is a finding only if its rate is at least resync.
	heartbeat, resync = 1.0, 2.0
)

// loop is a write that is repeated without a reason.
type loop struct {
	what   string // verb, resource and object
	writes []trace.Entry
	within time.Duration
}

func (l loop) rate() float64 { return float64(len(l.writes)) / l.within.Seconds() }

// grouped groups writes by verb and object, the most frequent first.
func grouped(m *state.Mask, entries []trace.Entry) []loop {
	by := map[string]*loop{}
	for i := range entries {
		e := &entries[i]
		if !isWork(e) || !succeeded(e) {
			continue
		}
		what := describe(m, e.Call)
		if by[what] == nil {
			by[what] = &loop{what: what}
		}
		by[what].writes = append(by[what].writes, *e)
	}
	var loops []loop
	for _, l := range by {
		loops = append(loops, *l)
	}
	sort.Slice(loops, func(i, j int) bool {
		a, b := loops[i], loops[j]
		return len(a.writes) > len(b.writes) || len(a.writes) == len(b.writes) && a.what < b.what
	})
	return loops
}

// idleLoops returns the writes that are repeated at rest, up to the end of the observed
// time.
func idleLoops(m *state.Mask, run *evidence.Run, s evidence.Step) []loop {
	if s.Watched <= 0 || s.Restless || missesPods(s.Idle) {
		return nil
	}
	fewest := fewestWrites
	if run.Fault != nil {
		fewest = fewestAfterFault
	}
	committed := authors(run)
	var loops []loop
	for _, l := range grouped(m, s.Idle) {
		l.within = s.Watched
		slowest := resync
		if effective(l.writes, committed) {
			slowest = heartbeat
		}
		if len(l.writes) >= fewest && l.rate() >= slowest && steady(l.writes, s) && !backsOff(l.writes) {
			loops = append(loops, l)
		}
	}
	return loops
}

// effective reports whether most of the writes were committed.
func effective(writes []trace.Entry, committed map[int64]*trace.Entry) bool {
	n := 0
	for _, e := range writes {
		for _, c := range committed {
			if c.Seq == e.Seq {
				n++
			}
		}
	}
	return 2*n > len(writes)
}

// missesPods reports whether the controller could not reach a Pod. The Pods of a plane are
// simulated, so a command in them fails, and the controller is right to try again.
func missesPods(entries []trace.Entry) bool {
	return slices.ContainsFunc(entries, func(e trace.Entry) bool {
		return e.Call != nil && e.Instance != "" && e.Call.Code >= http.StatusBadRequest && !e.Call.Injected &&
			e.Call.Target.Resource == "pods" && slices.Contains([]string{"exec", "attach", "portforward", "proxy", "log"}, e.Call.Target.Subresource)
	})
}

// growth is the minimum factor by which a pause of a backoff exceeds the previous pause. Work
// queues double the pause, but a busy machine makes the short pauses longer.
const growth = 1.4

// backsOff reports whether the pauses between the writes become longer and longer. Such pauses show
// that the controller repeats its work after an error, and that the writes are only the part of the
// work that comes before the error.
func backsOff(writes []trace.Entry) bool {
	least := 1.0
	for i := 2; i < len(writes); i++ {
		if writes[i].At-writes[i-1].At < writes[i-1].At-writes[i-2].At {
			return false
		}
		least *= growth
	}
	n := len(writes)
	return n > 2 && float64(writes[n-1].At-writes[n-2].At) >= least*float64(writes[1].At-writes[0].At)
}

// steady reports whether the writes continue into the last third of the observed time. A
// controller that only had to catch up, or backs off, has stopped writing before the last
// third.
func steady(writes []trace.Entry, s evidence.Step) bool {
	from := writes[0].At
	if s.RestedAt > 0 && s.RestedAt < from {
		from = s.RestedAt
	}
	return writes[len(writes)-1].At >= from+s.Watched*2/3
}

// idle finds loops at rest that do not happen without the fault.
func idle(in *input) []Finding {
	for _, s := range in.steps {
		if s.held {
			continue
		}
		for _, l := range idleLoops(in.ref.Mask, in.run, s.Step) {
			if !slices.Contains(s.want.Loops, l.what) {
				return []Finding{in.loop(s.Name, l, "although there is nothing to do")}
			}
		}
	}
	return nil
}

func (in *input) loop(step string, l loop, why string) Finding {
	f := in.finding(HotLoop, step, fmt.Sprintf("the controller sends %s %d times in %s, %s", l.what, len(l.writes), rounded(l.within), why), nil)
	f.Request, f.Detail = l.what, requests(l.writes)
	f.ID = f.identity(l.what)
	return f
}

func rounded(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}

// requests lists the first requests of a loop, one per line.
func requests(writes []trace.Entry) string {
	text := ""
	for i, e := range writes {
		if i == 5 {
			return text + fmt.Sprintf("… and %d more", len(writes)-i)
		}
		text += fmt.Sprintf("%8.3fs %s %s → %d, resourceVersion %s\n", e.At.Seconds(), e.Call.Verb, e.Call.Path, e.Call.Code, e.Call.ResourceVersion)
	}
	return text
}
