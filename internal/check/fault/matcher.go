package fault

import (
	"sync/atomic"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// burst is the number of requests in a row that ErrorBurst fails. More would raise a
// work queue's back-off beyond what a run waits for.
const burst = 3

// Matcher finds the request that a fault is meant for. It is safe for concurrent
// use; show it each request once, on arrival.
type Matcher struct {
	want      Point
	target    trace.Target // of want.Resource, with nothing but the type
	endpoint  string
	first     int64
	last      int64
	canonical Canonical
	change    func(*trace.Call) string

	seen atomic.Int64
}

// NewMatcher makes the matcher of one run. Canonical and change must be the ones that
// the plan was made with.
func NewMatcher(f Fault, canonical func(namespace, name, resource string) string, change func(*trace.Call) string) *Matcher {
	m := &Matcher{want: f.Point, canonical: canonical, change: change}
	m.target, m.endpoint = ParseResource(f.Point.Resource)
	m.first = int64(max(f.Point.Occurrence, 1))
	m.last = m.first
	if f.Kind == ErrorBurst {
		m.last += burst - 1
	}
	return m
}

// Match reports whether to apply the fault to this request. It returns true once in
// the life of a Matcher, or for three requests in a row with ErrorBurst. A fault that
// is not at a request never matches.
func (m *Matcher) Match(call *trace.Call, step string) bool {
	if !m.fits(call, step) {
		return false
	}
	n := m.seen.Add(1)
	return n >= m.first && n <= m.last
}

// fits makes the cheap comparisons first: almost every request fails one of them, so
// bodies are rarely read.
func (m *Matcher) fits(call *trace.Call, step string) bool {
	if m.want.Verb == "" || call.Verb != m.want.Verb || step != m.want.Step {
		return false
	}
	t := &call.Target
	if call.Endpoint != m.endpoint || t.Resource != m.target.Resource ||
		t.Group != m.target.Group || t.Subresource != m.target.Subresource {
		return false
	}
	if objectOf(call, m.canonical) != m.want.Object {
		return false
	}
	return m.want.Change == "" || m.change == nil || m.change(call) == m.want.Change
}
