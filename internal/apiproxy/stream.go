package apiproxy

import (
	"strconv"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy/wire"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// maxQueued is how many bytes are read ahead of a slow client. What is held has
// no limit, since the server must not notice.
const maxQueued = 4 << 20

// event is a frame on its way.
type event struct {
	wire.Event
	frame []byte
	came  time.Time // when it began to be held; zero if it was not
	held  time.Duration
}

// What next finds in a stream.
type streamState int

const (
	isIdle    streamState = iota // nothing to pass on now
	isEvent                      // an event to pass on
	isExpired                    // to be ended with 410
	isEnd                        // the server has ended it
	isBroken                     // the connection to the server has broken
)

// stream is an open watch.
//
//	push ─▶ queue ─▶ next ─▶ client      held: next finds nothing
//	          │                          expired: the queue is dropped, next says so once
//	          └ finish: the end comes after what is in the queue
type stream struct {
	call     int64
	target   trace.Target
	key      string
	protobuf bool
	// wake is for who passes events on: there is something new. changed is for
	// who looks at Activity.
	wake    chan struct{}
	changed *signal

	mu      sync.Mutex
	moved   *sync.Cond // the queue got shorter, or writing ended
	queue   []event
	queued  int // bytes
	held    bool
	expired bool
	end     streamState // isIdle while it goes on
	gone    bool        // nobody passes on any more
	writing bool        // something was taken that is not flushed yet
	// received, taken and seen are resource versions: of the newest event of the
	// server, of the newest that is being sent, and of the newest that was.
	received, taken, seen uint64
	initial               bool // until the bookmark that ends the initial events was sent
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
	s.seen = number(x.asked.query.Get("resourceVersion"))
	s.taken, s.received = s.seen, s.seen
	return s
}

// number is a resource version as the number it is; 0 if it is none.
func number(resourceVersion string) uint64 {
	n, _ := strconv.ParseUint(resourceVersion, 10, 64)
	return n
}

func (s *stream) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// push takes what the server has sent, and waits while the client is far behind.
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
		s.changed.fire()
	}
}

// finish tells that the server sends no more.
func (s *stream) finish(clean bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = isBroken
	if clean {
		s.end = isEnd
	}
	s.rouse()
}

// next takes an event out of the queue.
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
			return event{}, isIdle // flush first
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

// sent reports whether something was taken that has not been flushed.
func (s *stream) sent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writing
}

// delivered tells that all that was taken has been flushed.
func (s *stream) delivered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
	s.seen = s.taken
	s.initial = s.initial && !s.initialTaken
	s.moved.Broadcast()
}

// close tells that nothing is passed on any more.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	s.queue, s.queued = nil, 0
	s.moved.Broadcast()
}

// setHeld begins or ends holding. When it has begun and settle has returned,
// nothing more is sent.
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

// settle waits until what is being sent has been.
func (s *stream) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.writing && !s.gone {
		s.moved.Wait()
	}
}

// expire drops what is in the queue and ends the stream. It returns the newest
// resource version that the client may have known or missed.
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
