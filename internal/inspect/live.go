package inspect

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/broadcast"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Live is a session that may still grow. It is safe for concurrent use.
type Live struct {
	mu      sync.Mutex
	session *Session
	most    int
	size    int64 // of the entries, in bytes
	changed broadcast.Signal
}

// Still returns a session that does not grow.
func Still(s *Session) *Live { return &Live{session: s} }

// Follow returns a session that takes the entries of a log until the context ends. If most is not
// 0, the session drops old entries once it has twice as many entries as most; the last version of
// each object is kept.
func Follow(ctx context.Context, log *trace.Log, most int) *Live {
	l := &Live{session: New(trace.Header{Started: log.Started(), Subject: log.Subject}, log.Scrub), most: most}
	l.session.clock = func() time.Duration { return time.Since(log.Started()) }
	go l.follow(ctx, log)
	return l
}

// gather is the time for which entries are collected before the session is locked, so that
// readers are not kept waiting by each single entry.
const gather = 20 * time.Millisecond

func (l *Live) follow(ctx context.Context, log *trace.Log) {
	var last int64
	for {
		next := log.Recorded()
		if entries := log.After(last); len(entries) > 0 {
			last = entries[len(entries)-1].Seq
			l.add(entries)
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(gather):
		}
	}
}

func (l *Live) add(entries []trace.Entry) {
	l.mu.Lock()
	l.session.Add(entries...)
	l.size += trace.Size(entries)
	if n := len(l.session.entries); l.most > 0 && (n >= 2*l.most || l.size > trace.MostBytes) {
		l.session = l.session.trimmed(min(l.most, (n+1)/2))
		l.size = trace.Size(l.session.entries)
	}
	l.mu.Unlock()
	l.changed.Fire()
}

// View calls do with the session, which must not be used afterwards. The results that the session
// returns may be used only in do, too.
func (l *Live) View(do func(*Session)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do(l.session)
}

// Changed returns a channel that is closed when the session has grown. Call it before View, so
// that no change is missed.
func (l *Live) Changed() <-chan struct{} { return l.changed.Next() }

// trimmed returns a session of the last entries. Objects that only earlier entries describe are
// kept as if they had existed at the beginning.
func (s *Session) trimmed(most int) *Session {
	t := New(s.header, s.scrub)
	t.kinds, t.clock = s.kinds, s.clock
	first := len(s.entries) - most
	var kept []trace.Entry
	for _, o := range s.objects {
		v, found := o.latest()
		if !found || v.entry >= first || v.deleted {
			continue
		}
		kept = append(kept, trace.Entry{At: v.at, Commit: &trace.Commit{
			Revision: v.rv, Op: trace.Existed, Group: o.ref.Group, Kind: o.ref.Kind, Namespace: o.ref.Namespace, Name: o.ref.Name, Object: s.content(v),
		}})
	}
	if s.grants != nil && s.grants.Seq < s.entries[first].Seq {
		// An exported session lacks the earlier requests, so there the grants begin with the first
		// entry that is kept.
		grants := *s.grants
		grants.At = s.entries[first].At
		kept = append(kept, grants)
	}
	slices.SortFunc(kept, func(a, b trace.Entry) int { return int(a.At - b.At) })
	for i := range kept {
		kept[i].Seq = s.entries[first].Seq - int64(len(kept)-i)
	}
	t.Add(kept...)
	t.Add(s.entries[first:]...)
	// These indexes already include the last entries.
	t.instances, t.uses, t.granted = s.instances, s.uses, s.granted
	return t
}

// Write writes the complete session as a trace file.
func (s *Session) Write(w io.Writer) error {
	entries := slices.Clone(s.entries)
	for i := range entries {
		if line := entries[i].Line; line != nil {
			entries[i].Line = &trace.Line{Stream: line.Stream, Text: s.scrub(line.Text), Cut: line.Cut}
		}
	}
	return trace.Write(w, s.header, entries)
}
