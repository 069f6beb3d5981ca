package trace

import (
	"slices"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/broadcast"
)

// Log is a trace that is being recorded. The methods of a Log may be called concurrently.
type Log struct {
	// Subject is written to the header. Set it, and the other fields, before the log is used.
	Subject string
	// Scrub removes known secret values from the lines of an instance's output, and from the errors
	// of reconciles, both when they are recorded and when they are written: a controller may print
	// a password before it creates the Secret. Nil removes nothing.
	Scrub func(string) string
	// Most limits the number of entries that are kept. If Most is set, MostBytes limits their size.
	// The oldest entries are dropped. 0 keeps all.
	Most int

	started  time.Time
	recorded broadcast.Signal

	mu      sync.Mutex
	entries []Entry // without gaps; the last one has the number last
	last    int64
	size    int64 // of the entries, in bytes
}

// MostBytes limits the size of the entries of a log, in bytes, if the log drops entries. A
// controller that reads large lists would otherwise use up the memory.
const MostBytes = 512 << 20

// decoded is the approximate ratio of the memory that a decoded object needs to the object's size
// in the store.
const decoded = 4

// Size returns approximately how many bytes an entry needs.
func (e *Entry) Size() int64 {
	n := 512 // without bodies
	switch {
	case e.Call != nil:
		n += e.Call.RawRequest.Len() + e.Call.RawResponse.Len()
	case e.Watch != nil:
		n += e.Watch.RawObject.Len()
	case e.Review != nil:
		n += e.Review.RawRequest.Len() + e.Review.RawResponse.Len()
	case e.Line != nil:
		n += len(e.Line.Text)
	case e.Commit != nil:
		n += decoded * e.Commit.Size
	case e.Reconcile != nil:
		n += len(e.Reconcile.Error) + 256*len(e.Reconcile.Triggers)
	}
	return int64(n)
}

// Size returns approximately how many bytes entries need.
func Size(entries []Entry) (n int64) {
	for i := range entries {
		n += entries[i].Size()
	}
	return n
}

// NewLog returns an empty log whose times are measured from started.
func NewLog(started time.Time) *Log { return &Log{started: started} }

// Started returns the time from which the times of the entries are measured.
func (l *Log) Started() time.Time { return l.started }

// Record assigns the next number to e and appends e; if e has no time, Record sets it. The caller
// must not change anything that e points to afterwards. Record returns the entry as it was
// recorded.
func (l *Log) Record(e Entry) Entry {
	if e.Line != nil && l.Scrub != nil {
		e.Line.Text = l.Scrub(e.Line.Text)
	}
	if e.Reconcile != nil && l.Scrub != nil {
		e.Reconcile.Error = l.Scrub(e.Reconcile.Error)
	}
	e = l.append(e)
	l.recorded.Fire()
	return e
}

func (l *Log) append(e Entry) Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The time is read under the lock, so that times never go backwards.
	if e.At == 0 {
		e.At = time.Since(l.started)
	}
	l.last++
	e.Seq = l.last
	l.entries = append(l.entries, e)
	l.size += e.Size()
	if l.Most > 0 && (len(l.entries) >= 2*l.Most || l.size > MostBytes) {
		// Dropping half of the entries at once means that each entry is copied only once.
		l.entries = slices.Clone(l.entries[len(l.entries)-min(l.Most, (len(l.entries)+1)/2):])
		l.size = Size(l.entries)
	}
	return e
}

// Entries returns the entries so far.
func (l *Log) Entries() []Entry { return l.After(0) }

// After returns the entries with a number higher than seq that are still kept.
func (l *Log) After(seq int64) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.last - int64(len(l.entries)) // the number before the first entry
	return slices.Clone(l.entries[min(max(seq-first, 0), int64(len(l.entries))):])
}

// Recorded returns a channel that is closed when the next entry has been recorded. Call Recorded
// before After, so that no entry is missed.
func (l *Log) Recorded() <-chan struct{} { return l.recorded.Next() }

// scrubbed returns the entries without secret values that became known after the entries were
// recorded.
func (l *Log) scrubbed() []Entry {
	entries := l.Entries()
	for i := range entries {
		if line := entries[i].Line; line != nil && l.Scrub != nil {
			entries[i].Line = &Line{Stream: line.Stream, Text: l.Scrub(line.Text), Cut: line.Cut}
		}
		if r := entries[i].Reconcile; r != nil && r.Error != "" && l.Scrub != nil {
			clean := *r
			clean.Error = l.Scrub(r.Error)
			entries[i].Reconcile = &clean
		}
	}
	return entries
}
