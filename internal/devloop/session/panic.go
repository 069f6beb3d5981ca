package session

import (
	"bytes"
	"io"
	"regexp"
	"sync"
	"time"
)

const (
	// holdFor is the time within which a program ends after the first line of a panic. If the
	// program continues, the line was not the beginning of a panic.
	holdFor = 2 * time.Second
	// mostHeld limits the part of the output that is held, in bytes.
	mostHeld = 1 << 20
)

// panicLine matches the first line that Go prints when a program ends because of a panic.
var panicLine = regexp.MustCompile(`^(panic: |fatal error: )`)

// panicFirst passes on the output of a program line by line, but holds a panic at its end, so
// that its cause can be shown before its stack.
type panicFirst struct {
	mu      sync.Mutex
	out     io.Writer
	partial []byte // the line that is not complete yet
	held    bytes.Buffer
	holding bool
	over    *time.Timer
}

func newPanicFirst(out io.Writer) *panicFirst { return &panicFirst{out: out} }

// Write implements io.Writer. It returns no error, because the manager must not fail if the
// terminal is gone.
func (p *panicFirst) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(data)
	for {
		line, rest, complete := bytes.Cut(data, []byte("\n"))
		p.partial = append(p.partial, line...)
		if !complete {
			return n, nil
		}
		p.line(append(p.partial, '\n'))
		p.partial, data = p.partial[:0], rest
	}
}

func (p *panicFirst) line(line []byte) {
	if !p.holding && panicLine.Match(line) {
		p.holding = true
		p.over = time.AfterFunc(holdFor, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.release()
		})
	}
	if !p.holding {
		_, _ = p.out.Write(line)
		return
	}
	p.held.Write(line)
	if p.held.Len() > mostHeld {
		p.release()
	}
}

// release passes on what was held.
func (p *panicFirst) release() {
	p.holding = false
	_, _ = p.out.Write(p.held.Bytes())
	p.held.Reset()
}

// Close passes on everything except a panic, which it returns.
func (p *panicFirst) Close() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over != nil {
		p.over.Stop()
	}
	if len(p.partial) > 0 {
		p.line(append(p.partial, '\n'))
		p.partial = nil
	}
	held := p.held.String()
	p.held.Reset()
	p.holding = false
	return held
}
