package broadcast

import (
	"sync"
	"testing"
)

func TestAllWaitersWakeAndLaterOnesWaitForTheNextChange(t *testing.T) {
	var s Signal
	one, two := s.Next(), s.Next()
	s.Fire()
	<-one
	<-two
	select {
	case <-s.Next():
		t.Error("a new waiter is woken by the previous change")
	default:
	}
}

func TestChangeAfterNextIsNeverMissed(t *testing.T) {
	var s Signal
	var mu sync.Mutex
	n, woken := 0, make(chan struct{})
	go func() {
		defer close(woken)
		for {
			next := s.Next()
			mu.Lock()
			done := n == 100
			mu.Unlock()
			if done {
				return
			}
			<-next
		}
	}()
	for range 100 {
		mu.Lock()
		n++
		mu.Unlock()
		s.Fire()
	}
	<-woken
}
