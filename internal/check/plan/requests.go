package plan

import (
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
)

// The phases. A small budget ends in the first: its faults need nothing but a
// write, and the classes that they find are the most frequent.
const (
	atWrites     = 1
	atWatches    = 2
	staleLists   = 3
	interference = 4
)

// likely is what is done at a write, with its rank.
var likely = []struct {
	kind fault.Kind
	rank int
}{
	{fault.KillLost, 0},
	{fault.LoseResponse, 1},
	{fault.Conflict, 1},
	{fault.Error500, 2},
	{fault.KillAfter, 3},
	{fault.Error503, 5},
	{fault.TooMany429, 6},
}

// cost is what a fault adds to a run, in about tenths of a second: a restart, a
// Retry-After of a second, a Lease that has to run out.
func cost(kind fault.Kind) int {
	switch kind {
	case fault.Error500, fault.Conflict, fault.LoseResponse:
		return 1
	case fault.DeleteChild, fault.EditChild:
		return 3
	case fault.KillBefore, fault.KillLost, fault.KillAfter, fault.Restart, fault.DelayWatch:
		return 5
	case fault.StaleRestart, fault.DownDuring, fault.LoseStates, fault.AddFinalizer:
		return 8
	case fault.Error503, fault.TooMany429, fault.Timeout504, fault.ErrorBurst:
		return 10
	case fault.LoseLease:
		return 200
	}
	return 20
}

// requests plans what is done at single requests.
func (m *maker) requests() {
	for i := range m.read.requests {
		q := &m.read.requests[i]
		if !m.read.isPoint(q.call) || !m.wanted(q) {
			continue
		}
		switch {
		case q.call.Endpoint != "":
			m.atEndpoint(q)
		case q.write:
			m.atWrite(i)
		default:
			m.atRead(q)
		}
	}
}

// wanted drops the requests that are no points, each with its reason. Reads are
// dropped without a word where they are many: nothing hangs on them.
func (m *maker) wanted(q *request) bool {
	every := fault.Fault{Point: q.point}
	switch {
	case !q.write && q.call.Verb == "watch", !q.write && q.call.Code >= 500:
		return false
	case q.idle != "":
		m.skip(every, q.idle)
		return false
	case q.resting:
		if q.write {
			m.skip(every, "it came after the step had come to rest")
		}
		return false
	case q.point.Occurrence > m.occurrences():
		m.skip(every, fmt.Sprintf("it is the same as %d before it in this step", m.occurrences()))
		return false
	case !q.write && q.unsteady:
		m.skip(every, "not every run without a fault reads it")
		return false
	}
	return true
}

func (m *maker) occurrences() int {
	if m.in.Occurrences > 0 {
		return m.in.Occurrences
	}
	return 3
}

// atWrite plans the faults at an effective write to the cluster.
func (m *maker) atWrite(i int) {
	q := &m.read.requests[i]
	rank := m.rankOf(q)
	m.killBefore(i)
	for _, l := range likely {
		f := fault.Fault{Kind: l.kind, Point: q.point}
		if l.kind == fault.KillAfter && m.lastBeforeRest(i) {
			m.skip(f, "nothing is written after it in the step: the same as a restart at rest")
			continue
		}
		m.propose(f, atWrites, l.rank+rank)
	}
	if q.point.Occurrence > 1 {
		return
	}
	m.propose(fault.Fault{Kind: fault.ErrorBurst, Point: q.point}, interference, 6+rank)
	if q.call.Verb == "create" || q.call.Verb == "delete" {
		m.propose(fault.Fault{Kind: fault.Timeout504, Point: q.point}, interference, 5+rank)
	}
}

// rankOf is by how much a write is less likely to show something: creations and
// deletions come in pairs that a crash can part, the third of the same seldom
// shows more than the first, and what not all runs do may not come at all.
func (m *maker) rankOf(q *request) int {
	rank := 10 * (q.point.Occurrence - 1)
	switch {
	case q.call.Target.Subresource != "":
		rank += 2
	case q.call.Verb == "update", q.call.Verb == "patch":
		rank++
	}
	if q.unsteady {
		rank += 40
	}
	return rank
}

// killBefore is a state of its own only right after a write to an endpoint: that
// has done something that the cluster does not know yet. Otherwise the store is as
// after the write before.
func (m *maker) killBefore(i int) {
	f := fault.Fault{Kind: fault.KillBefore, Point: m.read.requests[i].point}
	before := m.read.effectBefore(i)
	switch {
	case before == nil:
		m.skip(f, "nothing is written before it in the step: the same as being down while the step is done")
	case before.call.Endpoint == "":
		m.skip(f, "the same as kill-lost at the write before it")
	default:
		m.propose(f, atWrites, 1+m.rankOf(&m.read.requests[i]))
	}
}

// effective says that a request changed something, in the cluster or outside.
func (r *reading) effective(q *request) bool {
	return q.write && q.idle == "" && r.isPoint(q.call)
}

// effectBefore is the last effective write before a request in its step, be it to
// the cluster or to an endpoint.
func (r *reading) effectBefore(i int) *request {
	for j := i - 1; j >= 0; j-- {
		q := &r.requests[j]
		if q.point.Step != r.requests[i].point.Step {
			return nil
		}
		if r.effective(q) {
			return q
		}
	}
	return nil
}

// lastBeforeRest says that a write is the last effective one of its step, and that
// there is nothing outside the cluster that could still be done.
func (m *maker) lastBeforeRest(i int) bool {
	if len(m.in.Scenario.Endpoints) > 0 {
		return false
	}
	for j := i + 1; j < len(m.read.requests); j++ {
		q := &m.read.requests[j]
		if q.point.Step != m.read.requests[i].point.Step {
			return true
		}
		if m.read.effective(q) {
			return false
		}
	}
	return true
}

// atRead plans that a read fails: whoever takes that for "not there" does harm.
func (m *maker) atRead(q *request) {
	m.propose(fault.Fault{Kind: fault.Error500, Point: q.point}, atWrites, 4+10*(q.point.Occurrence-1))
}

// atEndpoint plans the same for a server outside the cluster. There is no history
// of it, so each write that was answered well counts.
func (m *maker) atEndpoint(q *request) {
	rank := 10 * (q.point.Occurrence - 1)
	if !q.write {
		m.propose(fault.Fault{Kind: fault.Error500, Point: q.point}, interference, 3+rank)
		m.propose(fault.Fault{Kind: fault.Error503, Point: q.point}, interference, 5+rank)
		return
	}
	if q.unsteady {
		rank += 40
	}
	for _, l := range likely {
		if l.kind != fault.Conflict {
			m.propose(fault.Fault{Kind: l.kind, Point: q.point}, interference, l.rank+rank)
		}
	}
}
