package apiproxy

import (
	"cmp"
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Hold queues all further events and bookmarks of matching watches, in order. Matching watches that
// are opened later are held as well. Once Hold returns, no further event is on its way to the
// client. A second Hold applies in addition to the first.
func (p *Proxy) Hold(match func(trace.Target) bool) {
	var held []*stream
	p.mu.Lock()
	p.hold = append(p.hold, match)
	for s := range p.streams {
		if match(s.target) {
			s.setHeld(true)
			held = append(held, s)
		}
	}
	p.mu.Unlock()
	for _, s := range held {
		s.settle()
	}
	p.changed.Fire()
}

// Release sends all held events and bookmarks in order.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = nil
	for s := range p.streams {
		s.setHeld(false)
	}
	p.changed.Fire()
}

// Expire ends the matching watches with 410 Expired. An API server may end watches in the
// same way at any time. The held events of these watches are lost, so the client has to
// list again. A client that tries to resume the watch without listing gets 410 again. To
// make the client miss states, call Hold, wait, call Expire, then call Release.
func (p *Proxy) Expire(match func(trace.Target) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.streams {
		if match(s.target) {
			p.marks[s.key] = max(p.marks[s.key], s.expire())
		}
	}
	p.changed.Fire()
}

// Timeout returns the longest timeout of the watches that TimeOut would end, or 0 if there are
// none.
func (p *Proxy) Timeout(most time.Duration) (longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.streams {
		if s.timesOut(most) {
			longest = max(longest, s.timeout)
		}
	}
	return longest
}

// TimeOut ends the open watches that did not resume an earlier watch and whose clients declared a
// timeout no longer than most. The API server also ends a watch when its declared timeout has
// passed. A client that opens the same watch again gets all current objects once more.
func (p *Proxy) TimeOut(most time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.streams {
		if s.timesOut(most) {
			s.finish(true)
		}
	}
}

// Past makes the proxy answer list requests for some resources from an older state, but only if the
// request has resourceVersion=0, which accepts any state. The list is the API server's own list at
// the older version. A watch that starts at the version of the list gets the server's events since
// that version; Hold can delay these events. If past is nil, the proxy goes back to forwarding
// every list request.
func (p *Proxy) Past(past *Past) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past = past
}

// Activity returns the proxy's current activity.
func (p *Proxy) Activity() Activity {
	a := p.activity()
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.streams {
		a.Streams = append(a.Streams, s.activity())
	}
	slices.SortFunc(a.Streams, func(x, y Stream) int { return cmp.Compare(x.Call, y.Call) })
	return a
}

// streamKey returns a key that is the same for watches that see the same objects.
func streamKey(x *exchange) string {
	return x.r.URL.Path + "?" + x.asked.query.Get("labelSelector") + "&" + x.asked.query.Get("fieldSelector")
}

func (p *Proxy) open(x *exchange, protobuf bool) *stream {
	s := newStream(x, streamKey(x), protobuf)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[s] = struct{}{}
	s.held = slices.ContainsFunc(p.hold, func(match func(trace.Target) bool) bool { return match(s.target) })
	p.changed.Fire()
	return s
}

func (p *Proxy) close(s *stream) {
	s.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.streams, s)
	p.changed.Fire()
}

// unmark removes the mark that Expire left when it ended a watch. The proxy calls unmark when the
// client lists again.
func (p *Proxy) unmark(x *exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.marks) > 0 {
		delete(p.marks, streamKey(x))
	}
}

// resumesExpired reports whether the client resumes a watch at the point where Expire
// ended it, without listing again first.
func (p *Proxy) resumesExpired(x *exchange) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.marks) == 0 {
		return false
	}
	key := streamKey(x)
	until, marked := p.marks[key]
	delete(p.marks, key)
	from := number(x.asked.query.Get("resourceVersion"))
	return marked && from > 0 && from <= until && !isTrue(x.asked.query, "sendInitialEvents")
}
