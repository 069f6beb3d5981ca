package lab

import (
	"strings"
	"sync/atomic"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/upgrade"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// killing kills the instance of the new version once, after one of its writes is complete and before it
// gets the answer, and starts it again.
type killing struct {
	run     *run
	fault   fault.Fault
	matcher *fault.Matcher
	done    atomic.Bool
}

// killAt makes a run kill the new version at the fault's point. The lesson has the names that are the same
// in every run.
func (r *run) killAt(f *fault.Fault, lesson *Lesson) {
	if f != nil {
		r.replacement.killing = &killing{run: r, fault: *f, matcher: fault.NewMatcher(*f, lesson.canonical, lesson.change)}
		r.replacement.tail = lesson.Tail
	}
}

// Decide kills the instance at the point.
func (k *killing) Decide(call *trace.Call) apiproxy.Action {
	if !k.matcher.Match(call, k.fault.Point.Step) {
		return apiproxy.Action{}
	}
	return apiproxy.Action{Committed: func(call *trace.Call) {
		k.done.Store(true)
		k.run.log.Record(trace.Entry{Fault: &trace.Fault{What: "applied", Text: k.fault.String(), Call: call.ID}})
		k.run.controller.KillAndStartIn(next)
	}}
}

// decides returns what decides about the requests of the instances in a slot, or nil.
func (p *replacement) decides() func(slot int) apiproxy.Decider {
	if p == nil || p.killing == nil {
		return nil
	}
	return func(slot int) apiproxy.Decider {
		if slot == next {
			return p.killing
		}
		return nil
	}
}

// killed reports whether the new version was killed.
func (p *replacement) killed() bool { return p != nil && p.killing != nil && p.killing.done.Load() }

// killsOf returns a kill at each write of the new version that changed something in the upgrade, in their
// order. The last one is left out, because after it, a kill equals a restart at rest.
func killsOf(out *evidence.Run, lesson *Lesson) (kills []fault.Fault) {
	effective := map[*trace.Entry]bool{}
	for _, e := range judge.Authors(out) {
		effective[e] = true
	}
	deletes := func(c *trace.Call) bool { // its answer has no revision
		return strings.HasPrefix(c.Verb, "delete") && request.IsWork(c) && c.Code >= 200 && c.Code < 300
	}
	seen := map[fault.Point]int{}
	for placed := range fault.Calls(out.Entries) {
		e := placed.Entry
		if placed.Step != upgrade.Up || !strings.HasPrefix(e.Instance, upgrade.New+"-") {
			continue
		}
		point := fault.PointOf(e.Call, upgrade.Up, lesson.canonical, lesson.change)
		seen[point]++
		if !effective[e] && !deletes(e.Call) {
			continue
		}
		point.Occurrence = seen[point]
		kills = append(kills, fault.Fault{Kind: fault.KillLost, Point: point})
	}
	return kills[:max(len(kills)-1, 0)]
}
