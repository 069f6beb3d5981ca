package session

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// sink is a writer that may be used by several goroutines.
type sink struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (s *sink) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Write(data)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.String()
}

func TestAPanicAtTheEndOfTheOutputIsHeld(t *testing.T) {
	for printed, want := range map[string]struct{ passed, held string }{
		"a\nb\n": {"a\nb\n", ""},
		"a\nb":   {"a\nb\n", ""},
		"a\npanic: b\n\ngoroutine 1 [running]:\n": {"a\n", "panic: b\n\ngoroutine 1 [running]:\n"},
		"fatal error: all goroutines are asleep":  {"", "fatal error: all goroutines are asleep\n"},
		"{\"msg\": \"panic: b\"}\n":               {"{\"msg\": \"panic: b\"}\n", ""},
		"":                                        {"", ""},
	} {
		for size := range len(printed) + 1 { // the output arrives in any pieces
			var out sink
			p := newPanicFirst(&out)
			for rest := printed; rest != ""; {
				n := min(max(size, 1), len(rest))
				if _, err := p.Write([]byte(rest[:n])); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if held := p.Close(); held != want.held || out.String() != want.passed {
				t.Errorf("%q in pieces of %d: passed %q and held %q", printed, size, out.String(), held)
			}
		}
	}
}

func TestAProgramThatContinuesIsNotHeld(t *testing.T) {
	var out sink
	p := newPanicFirst(&out)
	if _, err := p.Write([]byte("panic: is the name of my log\nnext\n")); err != nil {
		t.Fatal(err)
	}
	late := time.After(5 * time.Minute)
	for out.String() != "panic: is the name of my log\nnext\n" {
		select {
		case <-late:
			t.Fatalf("got %q", out.String())
		case <-time.After(time.Millisecond):
		}
	}
	if held := p.Close(); held != "" {
		t.Errorf("held %q", held)
	}
}
