// Package output keeps the end of the output of programs that may print forever, and also the first
// panic, which may be anywhere in the output.
package output

import (
	"io"
	"slices"
	"strings"
	"sync"
)

// Tail keeps the end of the output that is written to it. It is safe for concurrent use. A
// nil Tail is empty.
type Tail struct {
	most int

	mu   sync.Mutex
	data []byte // up to twice as long as the kept part
	all  int64  // the number of bytes written so far
	cut  bool
	scan scanner
}

var _ io.Writer = (*Tail)(nil)

// NewTail returns a Tail that keeps at most the given number of bytes.
func NewTail(most int) *Tail { return &Tail{most: most} }

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scan.write(p)
	t.data, t.all = append(t.data, p...), t.all+int64(len(p))
	if extra := len(t.data) - t.most; extra > t.most {
		t.data = slices.Clone(t.data[extra:])
		t.cut = true
	}
	return len(p), nil
}

// String returns the kept text. After earlier text was dropped, the kept text starts at the
// beginning of a line where possible.
func (t *Tail) String() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	extra := max(0, len(t.data)-t.most)
	text := string(t.data[extra:])
	if t.cut || extra > 0 {
		if _, rest, ok := strings.Cut(text, "\n"); ok && rest != "" {
			text = rest
		}
	}
	return strings.ToValidUTF8(text, "")
}

// Written returns the number of bytes that were written so far.
func (t *Tail) Written() int64 {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}

// Since returns what was written after the given number of bytes, as far as it is still kept.
func (t *Tail) Since(written int64) string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.data[max(0, int64(len(t.data))-(t.all-written)):]), "")
}

// Panicked reports whether the output so far contains a panic. Unlike Panic, it may be called
// between two writes.
func (t *Tail) Panicked() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.scan.line != "" || t.scan.pending != nil
}

// Panic returns the first panic in the complete output, or a zero Panic. It must be called
// only after the last Write.
func (t *Tail) Panic() Panic {
	if t == nil {
		return Panic{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.scan.end()
}

// LastLine returns the last non-blank line of a text, without surrounding space, or "" if
// all lines are blank.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// LastLines returns at most n lines from the end of a text, without leading and trailing
// blank lines.
func LastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
