package trace

import (
	"bytes"
	"strings"
	"sync"
)

// Line is one line of an instance's output.
type Line struct {
	// Stream is stdout or stderr. Stream is empty if stdout and stderr go to the same pipe.
	Stream string `json:"stream,omitempty"`
	// Text is the line without its line break, and without known secret values.
	Text string `json:"text"`
	// Cut is the number of bytes by which the text was shortened.
	Cut int `json:"cut,omitempty"`
}

// longestLine is the maximum length of a line, in bytes. Some controllers log objects.
const longestLine = 32 << 10

// Lines is a writer that records what an instance prints, line by line. Each Write must be
// complete before the next one begins, but Close may be called at any time.
type Lines struct {
	log              *Log
	instance, stream string

	mu   sync.Mutex
	part []byte // the beginning of a line
	cut  int    // the number of bytes that do not fit into part
}

// NewLines returns a writer for one stream of an instance.
func NewLines(log *Log, instance, stream string) *Lines {
	return &Lines{log: log, instance: instance, stream: stream}
}

// Write never fails.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		l.add(line)
		if !ended {
			return n, nil
		}
		l.end()
		p = rest
	}
}

func (l *Lines) add(part []byte) {
	fits := min(len(part), longestLine-len(l.part))
	l.part = append(l.part, part[:fits]...)
	l.cut += len(part) - fits
}

func (l *Lines) end() {
	text := strings.ToValidUTF8(string(bytes.TrimSuffix(l.part, []byte("\r"))), "\uFFFD")
	l.log.Record(Entry{Instance: l.instance, Line: &Line{Stream: l.stream, Text: text, Cut: l.cut}})
	l.part, l.cut = l.part[:0], 0
}

// Close records a last line that has no line break.
func (l *Lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.end()
	}
	return nil
}
