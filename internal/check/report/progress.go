package report

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

// ProgressOptions describes the terminal on which progress is shown.
type ProgressOptions struct {
	// TTY makes Progress redraw one line; without TTY, Progress prints a line at intervals.
	TTY bool
	// Color enables colors; the caller decides, because it knows the terminal and NO_COLOR.
	Color bool
	// Width is the width in columns; 0 means 80.
	Width int
}

const (
	// redraw is the minimum time between two updates of the bar.
	redraw = 100 * time.Millisecond
	// heartbeat is the interval between two lines if there is no terminal.
	heartbeat = 10 * time.Second
)

// Progress shows the progress of a check, and findings as they arrive. Its methods are
// safe for concurrent use. A nil Progress shows nothing. Progress ignores errors of the
// writer, because they must not stop a check.
//
//	NewProgress ──▶ Phase ──▶ Total ──▶ Done, Found, Note … ──▶ Phase … ──▶ Close
type Progress struct {
	o    ProgressOptions
	stop chan struct{}
	gone chan struct{}

	mu       sync.Mutex
	w        io.Writer
	closed   bool
	drawn    bool // the bar is on the screen
	changed  bool // something has changed since the bar was drawn
	phase    string
	began    time.Time
	total    int
	done     int
	took     time.Duration // total duration of the runs of the phase
	kind     fault.Kind    // kind of the last run
	findings int           // findings of all phases
}

// NewProgress starts to show progress on w. Close ends it.
func NewProgress(w io.Writer, o ProgressOptions) *Progress {
	if o.Width <= 0 {
		o.Width = usualWidth
	}
	o.Width = max(o.Width, leastWidth)
	p := &Progress{o: o, w: w, began: time.Now(), stop: make(chan struct{}), gone: make(chan struct{})}
	go p.tick()
	return p
}

func (p *Progress) tick() {
	defer close(p.gone)
	every := heartbeat
	if p.o.TTY {
		every = redraw
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	last := time.Time{}
	for {
		select {
		case <-p.stop:
			return
		case now := <-ticker.C:
			p.mu.Lock()
			// The rate and the remaining time change even if nothing happens.
			if p.changed || now.Sub(last) >= time.Second {
				last = now
				p.show()
			}
			p.mu.Unlock()
		}
	}
}

// show draws the bar, or writes a line. The caller holds the lock.
func (p *Progress) show() {
	if p.phase == "" || p.closed {
		return
	}
	p.changed = false
	if !p.o.TTY {
		p.write(p.status() + "\n")
		return
	}
	p.write("\r\x1b[K" + p.bar())
	p.drawn = true
}

// say writes permanent lines above the bar. The caller holds the lock.
func (p *Progress) say(lines string) {
	if p.drawn {
		p.write("\r\x1b[K")
		p.drawn = false
	}
	p.write(lines)
	if p.o.TTY {
		p.changed = true
	}
}

func (p *Progress) write(text string) { _, _ = io.WriteString(p.w, text) }

// Phase begins a phase, such as learning or confirming, and resets the counts.
func (p *Progress) Phase(name string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.endPhase()
	p.phase, p.began, p.total, p.done, p.took, p.kind = unheard(inline(name)), time.Now(), 0, 0, 0, ""
	if !p.o.TTY {
		p.say(p.phase + "\n")
	}
	p.changed = p.o.TTY
}

// endPhase writes a summary of the phase if the phase had runs.
func (p *Progress) endPhase() {
	if p.phase == "" || p.done == 0 {
		return
	}
	line := fmt.Sprintf("%s: %s in %s, %s each", p.phase, noun.Count(p.done, "run"), span(time.Since(p.began)), span(p.took/time.Duration(p.done)))
	if rate := p.rate(); rate > 0 {
		line += fmt.Sprintf(", %.0f a minute", rate)
	}
	p.say(p.paint(dim, line) + "\n")
}

// Total sets the number of runs in the phase. It may change.
func (p *Progress) Total(n int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total, p.changed = n, p.o.TTY
}

// Done records the end of a run and its duration.
func (p *Progress) Done(kind fault.Kind, took time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.took += took
	p.kind, p.changed = kind, p.o.TTY
}

// Found shows a finding, on only one line if there is no terminal.
func (p *Progress) Found(f judge.Finding) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	c := about(f.Verdict).gravity.colour()
	if !f.Verdict.IsRemark() {
		p.findings++
	}
	verdict, sentence := inline(string(f.Verdict)), inline(f.Sentence)
	if !p.o.TTY {
		p.say(unheard(p.paint(c, verdict)+": "+sentence) + "\n")
		return
	}
	var b strings.Builder
	s := newSheet(&b, p.o.Width, p.o.Color)
	s.line(c, verdict)
	s.para(none, "  ", sentence)
	_ = s.w.Flush() // a strings.Builder never fails
	p.say(b.String())
}

// Note shows a remark.
func (p *Progress) Note(text string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.say(unheard(inline(text)) + "\n")
	}
}

// Close removes the bar. Progress shows nothing afterwards. Close may be called twice.
func (p *Progress) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.endPhase()
	p.say("")
	p.closed = true
	p.mu.Unlock()
	close(p.stop)
	<-p.gone
}

func (p *Progress) paint(c colour, text string) string {
	return (&sheet{colour: p.o.Color}).paint(c, text)
}

// rate returns the runs per minute in this phase.
func (p *Progress) rate() float64 {
	if minutes := time.Since(p.began).Minutes(); minutes > 0 {
		return float64(p.done) / minutes
	}
	return 0
}

// figures returns the known figures of the phase: runs, runs per minute, remaining time
// and findings.
func (p *Progress) figures() (all []string) {
	switch {
	case p.total > 0:
		all = append(all, fmt.Sprintf("%d/%d", p.done, p.total))
	case p.done > 0:
		all = append(all, noun.Count(p.done, "run"))
	}
	if rate := p.rate(); p.done > 0 && rate > 0 {
		all = append(all, fmt.Sprintf("%.0f/min", rate))
		if left := p.total - p.done; left > 0 {
			all = append(all, span(time.Duration(float64(left)/rate*float64(time.Minute)))+" left")
		}
	}
	if p.findings > 0 {
		all = append(all, noun.Count(p.findings, "finding"))
	}
	return all
}

// status returns the line that is shown if there is no terminal.
func (p *Progress) status() string {
	line := p.phase
	if figures := p.figures(); len(figures) > 0 {
		line += ": " + strings.Join(figures, ", ")
	}
	return fmt.Sprintf("%s (%s)", line, span(time.Since(p.began)))
}

// bar returns the line for a terminal. It leaves the last column free, because some
// terminals wrap the line when that column is written.
func (p *Progress) bar() string {
	const cells = 20
	most := p.o.Width - 1
	line := p.phase
	if p.total > 0 {
		full := min(max(cells*p.done/p.total, 0), cells)
		line += " [" + strings.Repeat("=", full) + strings.Repeat(" ", cells-full) + "]"
	}
	for _, figure := range append(p.figures(), inline(string(p.kind))) {
		if figure == "" || width(line)+2+width(figure) > most {
			continue
		}
		line += "  " + figure
	}
	return short(line, most)
}
