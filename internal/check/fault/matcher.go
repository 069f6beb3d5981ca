package fault

import (
	"sync/atomic"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Burst is the number of requests in a row that fail with ErrorBurst. With more failures,
// the back-off of a work queue would exceed the time that a run waits.
const Burst = 3

// Matcher finds the request to which a fault is applied. It is safe for concurrent use.
// Call Match once for each request, when the request arrives.
type Matcher struct {
	want      Point
	target    trace.Target // the type in want.Resource
	endpoint  string
	first     int64
	last      int64
	canonical Canonical
	change    func(*trace.Call) string

	seen  atomic.Int64
	ended atomic.Bool
}

// NewMatcher makes the matcher for one run. canonical and change must be the functions
// with which the plan was made.
func NewMatcher(f Fault, canonical func(namespace, name, resource string) string, change func(*trace.Call) string) *Matcher {
	m := &Matcher{want: f.Point, canonical: canonical, change: change}
	m.target, m.endpoint = ParseResource(f.Point.Resource)
	m.first = int64(max(f.Point.Occurrence, 1))
	m.last = m.first
	if f.Kind == ErrorBurst {
		m.last += Burst - 1
	}
	return m
}

// Match reports whether to apply the fault to this request. A Matcher returns true once,
// or with ErrorBurst for three requests in a row. A fault that is not at a request never
// matches, and no fault matches after End.
func (m *Matcher) Match(call *trace.Call, step string) bool {
	if !m.fits(call, step) {
		return false
	}
	n := m.seen.Add(1)
	return n >= m.first && n <= m.last && !m.ended.Load()
}

// End ends the fault: from now on, Match returns false. End returns the number of requests that the
// fault could still have matched. If the fault has not begun, or if it has ended before, End
// returns 0.
func (m *Matcher) End() (left int) {
	seen := m.seen.Load()
	if m.ended.Swap(true) || seen < m.first {
		return 0
	}
	return int(max(m.last-seen, 0))
}

// fits reports whether a request matches the point, apart from Occurrence. It makes the
// cheap comparisons first: almost every request fails one of them, so bodies are rarely
// read.
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
