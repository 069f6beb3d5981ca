// Package output keeps the end of what a program prints that may print for ever.
package output

import (
	"io"
	"slices"
	"strings"
	"sync"
)

// Tail keeps the end of what is written to it. Its methods may be called by anybody
// at any time; a nil Tail is an empty one.
type Tail struct {
	most int

	mu   sync.Mutex
	data []byte // at most twice as long as what is kept
	cut  bool
}

var _ io.Writer = (*Tail)(nil)

// NewTail keeps at most that many bytes.
func NewTail(most int) *Tail { return &Tail{most: most} }

// Write takes all, and never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if extra := len(t.data) - t.most; extra > t.most {
		t.data = slices.Clone(t.data[extra:])
		t.cut = true
	}
	return len(p), nil
}

// String begins with a whole line, if there is one.
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

// LastLine is the last line of a text that says anything, or empty.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
