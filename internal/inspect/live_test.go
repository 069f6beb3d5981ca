package inspect

import (
	"fmt"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestASessionThatFollowsALogKeepsTheLastVersionOfEachObject(t *testing.T) {
	const most, n = 20, 500
	log := trace.NewLog(time.Now())
	live := Follow(t.Context(), log, most)
	seen := func(kind, name string, rv int) {
		target := resources[kind]
		log.Record(trace.Entry{Instance: "controller-1", Watch: &trace.Watch{Type: "MODIFIED", Target: target, Object: raw(thing(kind, name, rv, `{"spec":{"size":1}}`))}})
	}
	log.Record(trace.Entry{Instance: "controller-1", Process: &trace.Process{What: "started", PID: 7}})
	seen("Widget", "w", 1)
	for i := range n {
		seen("ConfigMap", fmt.Sprint("c", i%3), 2+i)
	}
	for done := false; !done; {
		changed := live.Changed()
		live.View(func(s *Session) { done = s.Last() == n+2 })
		if !done {
			<-changed
		}
	}
	live.View(func(s *Session) {
		if len(s.entries) >= 2*most+most {
			t.Errorf("%d entries are kept", len(s.entries))
		}
		if content := s.Content(widget, 0); content == nil || metadata(content, "resourceVersion") != "1" {
			t.Errorf("the old object is %v", content)
		}
		if _, total := s.Objects("", 0, 0); total != 4 {
			t.Errorf("%d objects", total)
		}
		if o := s.Overview(); len(o.Instances) != 1 || o.Instances[0].PID != 7 {
			t.Errorf("the instances are %v", o.Instances)
		}
		if e, found := s.Entry(n + 2); !found || e.Seq != n+2 {
			t.Errorf("the last entry is %v", e)
		}
	})
}

// large returns the entries of a session with 10,000 objects and 100,000 entries, a fifth of
// which are writes.
func large() []trace.Entry {
	const objects, entries = 10_000, 100_000
	s := &story{entries: make([]trace.Entry, 0, entries)}
	labels := `"metadata":{"labels":{"app":"demo","tier":"backend","app.kubernetes.io/managed-by":"bench"}}`
	content := func(i, rv int) map[string]any {
		return thing("Widget", fmt.Sprint("w-", i), rv, fmt.Sprintf(`{%s,"spec":{"size":3,"image":"example.com/app:1","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},"status":{"observed":%d,"conditions":[{"type":"Ready","status":"True","reason":"AllGood","lastTransitionTime":"2026-11-25T10:00:00Z"}]}}`, labels, rv))
	}
	for i := range objects {
		s.saw("ADDED", content(i, i+1))
	}
	for rv := objects + 1; len(s.entries) < entries; rv++ {
		w := content(rv*7919%objects, rv)
		s.call("update", w, status).saw("MODIFIED", w)
		for range 3 {
			s.line(fmt.Sprintf(`{"level":"info","msg":"made it","controller":"widget","controllerGroup":"x.io","controllerKind":"Widget","Widget":{"name":%q,"namespace":"a"},"reconcileID":"id-%d"}`, metadata(w, "name"), rv))
		}
	}
	return s.entries[:entries]
}

// BenchmarkAdd measures the time to index 100,000 entries about 10,000 objects.
func BenchmarkAdd(b *testing.B) {
	entries := large()
	for b.Loop() {
		Of(trace.Header{}, entries)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(entries)), "µs/entry")
}

func BenchmarkQuestions(b *testing.B) {
	s := Of(trace.Header{}, large())
	ref := Ref{"x.io", "Widget", "a", "w-42"}
	for name, ask := range map[string]func(){
		"overview": func() { s.Overview() },
		"objects":  func() { s.Objects("", 5000, 100) },
		"filter":   func() { s.Objects("w-77", 0, 100) },
		"timeline": func() { s.Timeline(ref, 500) },
		"why":      func() { s.Why(ref, 100) },
		"recent":   func() { s.Why(Ref{}, 50) },
		"diff":     func() { s.Diff(ref, 0, 0) },
		"writes":   func() { s.Writes(Ref{}) },
		"owners":   func() { s.Owners(ref) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				ask()
			}
		})
	}
}
