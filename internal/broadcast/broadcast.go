// Package broadcast wakes all goroutines that wait for the next change.
package broadcast

import "sync"

// A Signal wakes every waiter each time it fires. The zero value is ready to use. Call Next
// before reading the state, so that no change after the read is missed.
type Signal struct {
	mu   sync.Mutex
	next chan struct{}
}

// Next returns a channel that is closed the next time the signal fires.
func (s *Signal) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

// Fire wakes all waiters, and costs next to nothing if there are none.
func (s *Signal) Fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}
