package report

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// ProgressOptions say what progress is shown on.
type ProgressOptions struct {
	// TTY redraws one line. Without it there is a line now and then.
	TTY bool
	// Color is the caller's decision, who knows the terminal and NO_COLOR.
	Color bool
	// Width is in columns; 0 means 80.
	Width int
}

const (
	// redraw is how often the bar is drawn at most, a tenth of a second.
	redraw = 100 * time.Millisecond
	// heartbeat is how often there is a line in a pipe.
	heartbeat = 10 * time.Second
)

// Progress shows how far a check is, and findings as they come. Its methods may be
// called by many at once, also on nil, which shows nothing. An error of the
// writer is no reason to stop a check and is not reported.
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
	changed  bool // since it was drawn
	phase    string
	began    time.Time
	total    int
	done     int
	took     time.Duration // of all runs of the phase, one after the other
	kind     fault.Kind    // of the last run
	findings int           // of all phases
}

// NewProgress starts to show progress on w, until Close.
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
			// The rate and what is left change also when nothing happens.
			if p.changed || now.Sub(last) >= time.Second {
				last = now
				p.show()
			}
			p.mu.Unlock()
		}
	}
}

// show draws the bar, or writes the line. The lock is held.
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

// say writes lines that stay, above the bar. The lock is held.
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

// Phase says what begins: learn, run, confirm. What was counted is of a phase.
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

// endPhase says how the phase went, if it had runs.
func (p *Progress) endPhase() {
	if p.phase == "" || p.done == 0 {
		return
	}
	line := fmt.Sprintf("%s: %s in %s, %s each", p.phase, number(p.done, "run"), span(time.Since(p.began)), span(p.took/time.Duration(p.done)))
	if rate := p.rate(); rate > 0 {
		line += fmt.Sprintf(", %.0f a minute", rate)
	}
	p.say(p.paint(dim, line) + "\n")
}

// Total says how many runs the phase has. It can change.
func (p *Progress) Total(n int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total, p.changed = n, p.o.TTY
}

// Done says that a run has ended, and how long it took.
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

// Found shows a finding. In a pipe it is one line.
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
	if !isRemark(f) {
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
	_ = s.w.Flush() // a strings.Builder takes everything
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

// Close takes the bar away. Nothing is shown after it, and it may be called twice.
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

// rate is runs per minute in this phase.
func (p *Progress) rate() float64 {
	if minutes := time.Since(p.began).Minutes(); minutes > 0 {
		return float64(p.done) / minutes
	}
	return 0
}

// figures are what is known of the phase: runs, runs per minute, time left,
// findings.
func (p *Progress) figures() (all []string) {
	switch {
	case p.total > 0:
		all = append(all, fmt.Sprintf("%d/%d", p.done, p.total))
	case p.done > 0:
		all = append(all, number(p.done, "run"))
	}
	if rate := p.rate(); p.done > 0 && rate > 0 {
		all = append(all, fmt.Sprintf("%.0f/min", rate))
		if left := p.total - p.done; left > 0 {
			all = append(all, span(time.Duration(float64(left)/rate*float64(time.Minute)))+" left")
		}
	}
	if p.findings > 0 {
		all = append(all, number(p.findings, "finding"))
	}
	return all
}

// status is the line of a pipe.
func (p *Progress) status() string {
	line := p.phase
	if figures := p.figures(); len(figures) > 0 {
		line += ": " + strings.Join(figures, ", ")
	}
	return fmt.Sprintf("%s (%s)", line, span(time.Since(p.began)))
}

// bar is the line of a terminal. It leaves the last column free, as some
// terminals go to the next line when that is written.
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
