package trace

import (
	"sync"
	"time"
)

// Log is a trace that is being recorded. Its methods may be called concurrently.
type Log struct {
	// Subject is written to the header. Set it before the log is written.
	Subject string

	started time.Time

	mu      sync.Mutex
	entries []Entry
}

// NewLog returns an empty log. Its times count from started.
func NewLog(started time.Time) *Log { return &Log{started: started} }

// Record appends e, with its number, and with the time if it has none. What e points to
// must not be changed afterwards.
func (l *Log) Record(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The time is taken under the lock, so that times never go back.
	if e.At == 0 {
		e.At = time.Since(l.started)
	}
	e.Seq = int64(len(l.entries)) + 1
	l.entries = append(l.entries, e)
}

// Entries returns the entries so far.
func (l *Log) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Entry(nil), l.entries...)
}
