package apiproxy

import (
	"strconv"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy/wire"
	"github.com/koboshi-dev/koboshi/internal/broadcast"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// maxQueued limits how many bytes are read ahead of a slow client. Held events are not
// limited, since the server must not notice the delay.
const maxQueued = 4 << 20

// event is a queued frame.
type event struct {
	wire.Event
	frame []byte
	came  time.Time // when holding it began; zero if it is not held
	held  time.Duration
}

// The results of stream.next.
type streamState int

const (
	isIdle    streamState = iota // nothing to forward now
	isEvent                      // an event to forward
	isExpired                    // the stream must end with 410
	isEnd                        // the server has ended the stream
	isBroken                     // the connection to the server has broken
)

// stream is an open watch.
//
//	push ─▶ queue ─▶ next ─▶ client      held: next finds nothing
//	          │                          expired: the queue is dropped, next returns isExpired
//	          └ finish: the end follows the queue
type stream struct {
	call     int64
	target   trace.Target
	key      string
	protobuf bool
	// timeout is the time after which the server ends the watch, if the client has declared
	// it. fresh reports whether the watch began with the current objects rather than with
	// the changes since a version or a list.
	timeout time.Duration
	fresh   bool
	// wake wakes the forwarding goroutine; changed wakes the readers of Activity.
	wake    chan struct{}
	changed *broadcast.Signal

	mu      sync.Mutex
	moved   *sync.Cond // signals that the queue is shorter, or that writing has ended
	queue   []event
	queued  int // bytes
	held    bool
	expired bool
	end     streamState // isIdle until the server's side ends
	gone    bool        // nothing is forwarded any more
	writing bool        // an event was taken and has not been flushed yet
	// received, taken and seen are the resource versions of the newest events that were
	// received from the server, taken from the queue, and sent to the client.
	received, taken, seen uint64
	initial               bool // true until the bookmark that ends the initial events is sent
	initialTaken          bool
}

func newStream(x *exchange, key string, protobuf bool) *stream {
	s := &stream{
		call: x.call.ID, target: x.asked.target, key: key, protobuf: protobuf,
		wake:    make(chan struct{}, 1),
		changed: x.changed,
		initial: isTrue(x.asked.query, "sendInitialEvents"),
	}
	s.moved = sync.NewCond(&s.mu)
	s.timeout = time.Duration(number(x.asked.query.Get("timeoutSeconds"))) * time.Second
	s.fresh = !s.initial && number(x.asked.query.Get("resourceVersion")) == 0
	s.seen = number(x.asked.query.Get("resourceVersion"))
	s.taken, s.received = s.seen, s.seen
	return s
}

// number parses a resource version; it returns 0 for any other text.
func number(resourceVersion string) uint64 {
	n, _ := strconv.ParseUint(resourceVersion, 10, 64)
	return n
}

func (s *stream) timesOut(most time.Duration) bool {
	return s.fresh && s.timeout > 0 && s.timeout <= most
}

func (s *stream) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// push queues an event, and waits while the client is far behind.
func (s *stream) push(frame []byte, e wire.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.queued > maxQueued && !s.held && !s.gone && !s.expired {
		s.moved.Wait()
	}
	if s.gone || s.expired {
		return
	}
	one := event{Event: e, frame: frame}
	if s.held {
		one.came = time.Now()
	}
	s.queue = append(s.queue, one)
	s.queued += len(frame)
	s.received = max(s.received, number(e.ResourceVersion))
	s.rouse()
	if s.held {
		s.changed.Fire()
	}
}

// finish ends the stream once the queue is empty. clean reports whether the server ended
// the stream; otherwise the connection broke.
func (s *stream) finish(clean bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = isBroken
	if clean {
		s.end = isEnd
	}
	s.rouse()
}

// next removes the first event from the queue.
func (s *stream) next() (event, streamState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.expired:
		return event{}, isExpired
	case s.held:
		return event{}, isIdle
	case len(s.queue) == 0:
		if s.end != isIdle && s.writing {
			return event{}, isIdle // the written events must be flushed first
		}
		return event{}, s.end
	}
	e := s.queue[0]
	s.queue[0] = event{}
	s.queue = s.queue[1:]
	s.queued -= len(e.frame)
	s.writing = true
	s.taken = max(s.taken, number(e.ResourceVersion))
	s.initialTaken = s.initialTaken || e.InitialEventsEnd
	if !e.came.IsZero() {
		e.held = time.Since(e.came)
	}
	s.moved.Broadcast()
	return e, isEvent
}

// sent reports whether events have been taken from the queue but not flushed yet.
func (s *stream) sent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writing
}

// delivered records that all events taken from the queue have been flushed.
func (s *stream) delivered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
	s.seen = s.taken
	s.initial = s.initial && !s.initialTaken
	s.moved.Broadcast()
}

// close marks the stream as no longer forwarded.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	s.queue, s.queued = nil, 0
	s.moved.Broadcast()
}

// setHeld starts or stops holding the stream's events. Once holding has started and
// settle has returned, nothing more is sent.
func (s *stream) setHeld(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	if held {
		now := time.Now()
		for i := range s.queue {
			s.queue[i].came = now
		}
		return
	}
	s.moved.Broadcast()
	s.rouse()
}

// settle waits until all events taken from the queue have been sent.
func (s *stream) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.writing && !s.gone {
		s.moved.Wait()
	}
}

// expire drops the queue, ends the stream, and returns the resource version of the last event that
// the stream has received, which may not have been sent to the client.
func (s *stream) expire() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired = true
	s.queue, s.queued = nil, 0
	s.moved.Broadcast()
	s.rouse()
	return s.received
}

func (s *stream) activity() Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Stream{Call: s.call, Target: s.target, Initial: s.initial}
	if s.seen > 0 {
		a.ResourceVersion = strconv.FormatUint(s.seen, 10)
	}
	if s.held {
		a.Held = len(s.queue)
	}
	return a
}
