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

// NewLog returns an empty log whose times count from started.
func NewLog(started time.Time) *Log { return &Log{started: started} }

// Record numbers e and appends it; if e has no time, Record sets it. The caller must not
// change anything that e points to afterwards.
func (l *Log) Record(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The time is read under the lock, so that times never go backwards.
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
