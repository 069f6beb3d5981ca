// Package logs shows the log of a manager to people.
//
//	bytes ─▶ lines ─┬▶ a line of a log ─▶ count ─▶ fold ─▶ fit ─▶ a short line
//	           │    │                                ▲
//	           │    └▶ what belongs to the line before: a stack, a value of several lines
//	           └────▶ anything else ──────────────────────────▶ as it is, byte for byte
//
// The lines of a log are those that package logline can parse. The package writes parsed values so
// that they cannot move the cursor of a terminal. Anything else that the manager prints is passed
// on unchanged, and so is a value of several lines whose end does not arrive in time.
package logs

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/logline"
)

// Form is the way in which a log is shown.
type Form int

const (
	// Short shows one short line for each line of the log, and folds the fields that
	// controller-runtime adds to each line.
	Short Form = iota
	// Full shows all fields as they are, and nothing is cut.
	Full
	// Plain passes on each byte at once. Errors are counted in this form, too.
	Plain
)

// Options describes where a log is shown, and how.
type Options struct {
	Form  Form
	Color bool
	// Width returns the number of columns of the terminal. If it is nil or returns 0, nothing is
	// cut.
	Width func() int
	// Unfold names the flag that shows everything. It is mentioned where something is folded.
	Unfold string
}

const (
	// holdFor is how long to wait for the other lines of a message. A logger writes all lines of a
	// message at once.
	holdFor = 100 * time.Millisecond
	// mostHeld is the maximum size in bytes of the lines that are held meanwhile.
	mostHeld = 1 << 20
	// longestLine is the maximum length of a line that is parsed, in bytes. A longer line is passed
	// on unchanged.
	longestLine = 16 << 20
)

// Printer is a writer for the output of a manager. It may be used by several goroutines. It
// never returns an error, because the manager must not fail if the terminal is gone.
type Printer struct {
	o       Options
	now     func() time.Time
	holdFor time.Duration

	mu      sync.Mutex
	out     io.Writer
	partial []byte // a line that is not complete yet
	passing bool   // the rest of a line that is too long follows

	value   []byte      // the lines of a value of klog so far
	stack   *stack      // not nil if the lines of a stack may follow
	late    *time.Timer // shows what is held
	hinted  bool        // the output has named Unfold
	total   tally       // since the beginning
	current tally       // since the last call of Recent
}

var _ io.WriteCloser = (*Printer)(nil)

// New returns a printer that writes to out.
func New(out io.Writer, o Options) *Printer {
	return &Printer{o: o, out: out, now: time.Now, holdFor: holdFor}
}

// Write implements io.Writer.
func (p *Printer) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.o.Form == Plain {
		_, _ = p.out.Write(data)
	}
	n := len(data)
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n') + 1
		complete := end > 0
		if !complete {
			end = len(data)
		}
		p.piece(data[:end], complete)
		data = data[end:]
	}
	return n, nil
}

// piece handles a line with its line end, or a part of a line.
func (p *Printer) piece(data []byte, complete bool) {
	switch {
	case p.passing:
		p.pass(data)
		p.passing = !complete
	case len(p.partial)+len(data) > longestLine:
		p.flush()
		p.pass(p.partial)
		p.pass(data)
		p.partial, p.passing = nil, !complete
	case !complete:
		p.partial = append(p.partial, data...)
	case len(p.partial) == 0:
		p.line(data)
	default:
		p.line(append(p.partial, data...))
		p.partial = nil
	}
}

// Flush shows the lines that are held because more lines may belong to them. Call it before
// something else is written to the same terminal.
func (p *Printer) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flush()
}

// Close shows everything, including an incomplete last line. Its error is always nil.
func (p *Printer) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.partial) > 0 {
		p.line(p.partial)
		p.partial = nil
	}
	p.flush()
	return nil
}

// pass passes on bytes as they are.
func (p *Printer) pass(data []byte) {
	if p.o.Form != Plain {
		_, _ = p.out.Write(data)
	}
}

// line handles a line with its line end; only the last line may lack a line end.
func (p *Printer) line(line []byte) {
	text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
	if p.continues(line, text) {
		return
	}
	p.flush()
	if logline.Begins(text) {
		p.value = append(p.value, line...)
		p.hold()
		return
	}
	if l, ok := logline.Parse(text); ok {
		p.show(l)
		return
	}
	p.pass(line)
}

// continues accepts a line if it belongs to the line before, and reports whether it does.
func (p *Printer) continues(line []byte, text string) bool {
	switch {
	case len(p.value) > 0 && len(p.value) < mostHeld:
		continues, complete := logline.Continues(text)
		if continues {
			p.value = append(p.value, line...)
		}
		if complete {
			p.showValue()
		}
		return continues
	case p.stack != nil && p.stack.size < mostHeld && p.stack.take(line, text):
		p.hold()
		return true
	}
	return false
}

// showValue shows a message in klog's format that consists of several lines.
func (p *Printer) showValue() {
	text := strings.TrimSuffix(strings.ReplaceAll(string(p.value), "\r\n", "\n"), "\n")
	l, ok := logline.Parse(text)
	if !ok {
		p.flush()
		return
	}
	p.value = nil
	p.show(l)
}

// show counts a line, and writes it unless Write has written it already.
func (p *Printer) show(l logline.Line) {
	p.count(l)
	switch p.o.Form {
	case Short:
		_, _ = io.WriteString(p.out, p.short(l))
		if l.Format == logline.Console {
			p.stack = &stack{}
		}
	case Full:
		_, _ = io.WriteString(p.out, p.full(l))
	case Plain:
	}
}

// hold ensures that the held lines are shown soon even if no other line follows.
func (p *Printer) hold() {
	if p.late == nil {
		p.late = time.AfterFunc(p.holdFor, p.Flush)
		return
	}
	p.late.Reset(p.holdFor)
}

// flush shows what is held. Lines that turn out not to belong together are passed on unchanged.
func (p *Printer) flush() {
	if p.late != nil {
		p.late.Stop()
	}
	if len(p.value) > 0 {
		first, _, _ := strings.Cut(string(p.value), "\n")
		if l, ok := logline.Parse(strings.TrimSuffix(first, "\r")); ok {
			p.count(l)
		}
		p.pass(p.value)
		p.value = nil
	}
	if p.stack != nil {
		_, _ = io.WriteString(p.out, p.frames(p.stack.frames))
		p.pass(p.stack.function)
		p.stack = nil
	}
}
