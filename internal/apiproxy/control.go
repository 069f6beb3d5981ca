package apiproxy

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Hold keeps from now on all events and bookmarks of the watches that match, in
// order, also of watches that begin later. When it returns, nothing that comes
// after is on its way to the client. A second Hold adds to the first.
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
	p.changed.fire()
}

// Release lets all that is held go on, in order.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = nil
	for s := range p.streams {
		s.setHeld(false)
	}
	p.changed.fire()
}

// Expire ends the watches that match with 410 Expired, as an API server may at
// any time. What is held of them is lost, so that the client has to list again.
// One that tries to go on where it was instead is told so again, once. To lose
// states: Hold, wait, Expire, then Release.
func (p *Proxy) Expire(match func(trace.Target) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.streams {
		if match(s.target) {
			p.marks[s.key] = max(p.marks[s.key], s.expire())
		}
	}
	p.changed.fire()
}

// Past answers each list with resourceVersion=0 of the resources that match from
// what list returns: objects of the type in any namespace, and the resource
// version at which they were so. Who lists so has asked for any state, and a
// watch that goes on from there gets what the server has since then; Hold keeps
// that away for a while. A nil resource ends it.
//
// Lists as tables, in protobuf only, or by fields other than name and namespace
// are answered by the server.
func (p *Proxy) Past(resource func(trace.Target) bool, list func(trace.Target) (items []json.RawMessage, resourceVersion string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past, p.list = resource, list
}

// Activity tells what goes on now.
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

// streamKey tells watches apart that see different objects.
func streamKey(x *exchange) string {
	return x.r.URL.Path + "?" + x.asked.query.Get("labelSelector") + "&" + x.asked.query.Get("fieldSelector")
}

func (p *Proxy) open(x *exchange, protobuf bool) *stream {
	s := newStream(x, streamKey(x), protobuf)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[s] = struct{}{}
	s.held = slices.ContainsFunc(p.hold, func(match func(trace.Target) bool) bool { return match(s.target) })
	p.changed.fire()
	return s
}

func (p *Proxy) close(s *stream) {
	s.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.streams, s)
	p.changed.fire()
}

// unmark forgets that a watch was ended, because its client lists.
func (p *Proxy) unmark(x *exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.marks) > 0 {
		delete(p.marks, streamKey(x))
	}
}

// resumesExpired reports whether the watch goes on from where Expire ended it,
// without a list in between.
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
