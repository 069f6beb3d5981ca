package plan

import (
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// likely lists the kinds of fault at a write, with their ranks.
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

// requests plans the faults at single requests.
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

// wanted reports whether a request becomes a point. If a write does not become a point,
// wanted notes the reason. Watches, failed reads and reads at rest are dropped without a
// note, because nothing depends on them.
func (m *maker) wanted(q *asked) bool {
	every := fault.Fault{Point: q.point}
	switch {
	case !q.write && q.call.Verb == "watch", !q.write && q.call.Code >= 500:
		return false
	case q.idle != "":
		m.skip(every, q.idle)
		return false
	case q.resting:
		if q.write {
			m.skip(every, "it was sent after the step had come to rest")
		}
		return false
	case q.point.Occurrence > m.occurrences():
		m.skip(every, fmt.Sprintf("it is the same as %d earlier requests in this step", m.occurrences()))
		return false
	case !q.write && q.unsteady:
		m.skip(every, "some runs without a fault do not send this read request")
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
			m.skip(f, "no write follows it in the step, so this fault equals a restart at rest")
			continue
		}
		m.propose(f, l.rank+rank)
	}
	m.terminate(q, m.lastBeforeRest(i), rank)
	m.once(q, rank)
	m.webhookDown(q, rank)
	if q.point.Occurrence > 1 {
		return
	}
	m.propose(fault.Fault{Kind: fault.ErrorBurst, Point: q.point}, 6+rank)
	if q.call.Verb == "create" || q.call.Verb == "delete" {
		m.propose(fault.Fault{Kind: fault.Timeout504, Point: q.point}, 5+rank)
	}
}

// terminate plans a graceful exit at a write, once for each verb and type in a step. A status that is
// written last is left out, because it reports work that is already done.
func (m *maker) terminate(q *asked, last bool, rank int) {
	f := fault.Fault{Kind: fault.Terminate, Point: q.point}
	switch {
	case q.unsteady:
	case last && q.call.Target.Subresource == "status":
		m.skip(f, "no write follows this status in the step, so no work is interrupted")
	default:
		m.proposeOnce(f, fault.Point{Step: q.point.Step, Verb: q.point.Verb, Resource: q.point.Resource}, 4+rank)
	}
}

// once plans the faults that the plan contains only once for each type or verb, in a step or in the
// scenario, because they depend less on the object and on the content of the write than on the code
// around it. Where a creation meets a quota, a missing permission would show the same.
func (m *maker) once(q *asked, rank int) {
	if q.unsteady {
		return
	}
	at := q.point
	m.proposeOnce(fault.Fault{Kind: fault.Hang, Point: at}, fault.Point{Resource: at.Type()}, 3+rank)
	if m.read.creates(q) && q.call.Target.Namespace != "" {
		m.proposeOnce(fault.Fault{Kind: fault.Forbid, Point: at}, fault.Point{Step: at.Step, Resource: at.Resource}, 1+rank)
	} else if q.call.Endpoint == "" {
		m.proposeOnce(fault.Fault{Kind: fault.Revoke, Point: at}, fault.Point{Verb: at.Verb, Resource: at.Resource}, 3+rank)
	}
}

// webhookDown plans an outage of the controller's webhooks, once for each type in a step that the webhooks
// cover. It begins with a write of the controller, when a single change of the step has been accepted.
// Further changes of the step would be refused as well. A mutating webhook that the API server may do without
// would be missing too, and what it should have changed would stay as it is.
func (m *maker) webhookDown(q *asked, rank int) {
	if m.read.facts.Reviewed == nil || !m.read.facts.Reviewed(q.call) || q.unsteady {
		return
	}
	f := fault.Fault{Kind: fault.WebhookDown, Point: q.point}
	switch say := m.read.defined(q.point.Step); {
	case say == nil:
		m.skip(f, "the API server does not call the webhooks before the first step")
	case m.in.Subject.MutatesUnlessDown():
		m.skip(f, "a mutating webhook of the controller has the failurePolicy Ignore, so objects would be created without its changes, and stay so")
	case !changesOnce(say):
		m.skip(f, "the step may change several objects, and the later changes would be refused as well")
	default:
		m.proposeOnce(f, fault.Point{Step: q.point.Step, Resource: q.point.Type()}, 2+rank)
	}
}

// defined returns the definition of a step in the scenario, or nil if the scenario does not define it.
func (r *reading) defined(name string) *scenario.Step {
	for _, s := range r.steps {
		if s.Name == name {
			return s.say
		}
	}
	return nil
}

// changesOnce reports whether a step sends at most one change to the API server.
func changesOnce(s *scenario.Step) bool {
	if len(s.Apply) > 0 {
		return len(s.Apply) == 1 && s.Apply[0].Object != nil // a file may contain several objects
	}
	return len(s.Run) == 0 && s.PodHealth == ""
}

// creates reports whether a request created an object.
func (r *reading) creates(q *asked) bool {
	return q.change >= 0 && r.run.History.Changes[q.change].Op == state.Created
}

// proposeOnce plans a fault at a request, unless the same is planned for another request that has the
// given part of the point in common.
func (m *maker) proposeOnce(f fault.Fault, common fault.Point, rank int) {
	class := fault.Fault{Kind: f.Kind, Point: common}
	if m.tried[class] {
		m.skip(f, "the same fault is planned at a similar request")
		return
	}
	m.tried[class] = m.propose(f, rank)
}

// rankOf returns a higher rank for writes that are less likely to show a problem.
// A creation or deletion often belongs together with another write, and a crash can
// separate the two. A third occurrence seldom shows more than the first. A write that only
// some runs make might not occur at all.
func (m *maker) rankOf(q *asked) int {
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

// killBefore plans a kill before a write that directly follows a write to an endpoint, because the
// write to the endpoint has left no trace in the cluster yet. After a write to the cluster, the
// kill would equal the fault kill-lost at that write.
func (m *maker) killBefore(i int) {
	f := fault.Fault{Kind: fault.KillBefore, Point: m.read.requests[i].point}
	before := m.read.effectBefore(i)
	switch {
	case before == nil:
		m.skip(f, "no write precedes it in the step, so this fault equals being down during the step")
	case before.call.Endpoint == "":
		m.skip(f, "this fault equals kill-lost at the previous write")
	default:
		m.propose(f, 1+m.rankOf(&m.read.requests[i]))
	}
}

// effective reports whether a request changed something, in the cluster or outside.
func (r *reading) effective(q *asked) bool {
	return q.write && q.idle == "" && r.isPoint(q.call)
}

// effectBefore returns the last effective write before a request in the same step, to
// the cluster or to an endpoint.
func (r *reading) effectBefore(i int) *asked {
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

// lastBeforeRest reports whether a write is the last effective write of its step. It
// returns false if the scenario has endpoints, because writes to the endpoints may still
// follow.
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

// atRead plans the failure of a read. A controller that mistakes the error for "not
// found" does harm.
func (m *maker) atRead(q *asked) {
	m.propose(fault.Fault{Kind: fault.Error500, Point: q.point}, 4+10*(q.point.Occurrence-1))
}

// atEndpoint plans faults at requests to an external server, as atRead and atWrite do for
// the cluster. The changes of an external server are not recorded, so every successful
// write counts as effective.
func (m *maker) atEndpoint(q *asked) {
	rank := 10 * (q.point.Occurrence - 1)
	if !q.write {
		m.propose(fault.Fault{Kind: fault.Error500, Point: q.point}, 3+rank)
		m.propose(fault.Fault{Kind: fault.Error503, Point: q.point}, 5+rank)
		return
	}
	if q.unsteady {
		rank += 40
	}
	for _, l := range likely {
		if l.kind != fault.Conflict {
			m.propose(fault.Fault{Kind: l.kind, Point: q.point}, l.rank+rank)
		}
	}
	m.terminate(q, false, rank)
	m.once(q, rank)
}
