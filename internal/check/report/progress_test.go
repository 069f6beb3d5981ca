package report

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

var found = judge.Finding{Verdict: judge.Leak, Scenario: "life", Sentence: "Killed after CREATE Secret default/a; the Secret was left after the deletion of its owner, for ever."}

func TestProgressInAPipeIsALineEveryTenSecondsAndOneForEachFinding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, ProgressOptions{})
		p.Phase("run")
		p.Total(100)
		for range 25 {
			<-time.After(time.Second)
			p.Done(fault.KillAfter, 2*time.Second)
		}
		p.Found(found)
		p.Note("two\nlines")
		p.Close()
		// In the tenth second, a run ends and a line is printed, in either order.
		got := strings.ReplaceAll(out.String(), "9/100, 54/min, 1 min 41 s left", "10/100, 60/min, 1 min 30 s left")
		got = strings.ReplaceAll(got, "19/100, 57/min, 1 min 25 s left", "20/100, 60/min, 1 min 20 s left")
		want := `run
run: 10/100, 60/min, 1 min 30 s left (10 s)
run: 20/100, 60/min, 1 min 20 s left (20 s)
LEAK: ` + found.Sentence + `
two\nlines
run: 25 runs in 25 s, 2 s each, 60 a minute
`
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestBarIsDrawnAtMostTenTimesASecondAndFitsTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, ProgressOptions{TTY: true, Width: 60})
		p.Phase("run")
		p.Total(5000)
		for range 5000 { // in five seconds
			<-time.After(time.Millisecond)
			p.Done(fault.KillAfter, time.Millisecond)
		}
		p.Found(found)
		<-time.After(time.Second)
		p.Close()
		drawn := strings.Split(out.String(), "\r\x1b[K")
		if len(drawn) < 40 || len(drawn) > 65 {
			t.Errorf("drawn %d times in 6 s", len(drawn))
		}
		for _, line := range strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\r' || r == '\n' }) {
			if line = strings.TrimPrefix(line, "\x1b[K"); len(line) >= 60 {
				t.Errorf("a line of %d columns: %q", len(line), line)
			}
		}
		if last := drawn[len(drawn)-1]; strings.Contains(last, "[") {
			t.Errorf("the bar is still there: %q", last)
		}
		if !strings.Contains(out.String(), "1 finding") || !strings.Contains(out.String(), "[==========          ]") {
			t.Errorf("no bar that is half full, or no count of findings:\n%q", out.String())
		}
	})
}

func TestBarShowsThatTimePassesWhenNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, ProgressOptions{TTY: true})
		p.Phase("run")
		p.Done(fault.Restart, time.Second)
		<-time.After(30 * time.Second)
		p.Close()
		if n := strings.Count(out.String(), "\r\x1b[K"); n < 28 || n > 34 {
			t.Errorf("drawn %d times in 30 s of silence, want about once a second", n)
		}
	})
}

func TestProgressCanBeUsedByManyAndIsSilentAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, ProgressOptions{TTY: true, Color: true})
		p.Phase("run")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 100 {
					p.Done(fault.Conflict, time.Millisecond)
					p.Found(found)
					<-time.After(time.Millisecond)
				}
			})
		}
		all.Wait()
		p.Close()
		p.Close()
		length := out.Len()
		p.Phase("after")
		p.Found(found)
		p.Note("after")
		p.Done(fault.Conflict, 0)
		if out.Len() != length {
			t.Errorf("written after Close: %q", out.String()[length:])
		}
	})
}

func TestNoProgressIsShownOnNil(t *testing.T) {
	var p *Progress
	p.Phase("run")
	p.Total(1)
	p.Done(fault.Restart, 0)
	p.Found(found)
	p.Note("x")
	p.Close()
}

func TestProgressCannotBeUsedToSteerATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, ProgressOptions{})
		p.Phase(hostile)
		p.Found(judge.Finding{Verdict: "::error::", Sentence: hostile})
		p.Note("::set-env::" + hostile)
		p.Close()
		for line := range strings.SplitSeq(out.String(), "\n") {
			if strings.ContainsAny(line, "\x1b\x07\u009b\u202e") || strings.HasPrefix(line, "::") {
				t.Errorf("written without escapes: %q", line)
			}
		}
	})
}
