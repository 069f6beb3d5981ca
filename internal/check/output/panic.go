package output

import (
	"bytes"
	"regexp"
	"strings"
)

// A Panic is a part of a program's output that shows a mistake in the program: a panic in
// Go or Rust, or an error in Python, Java or JavaScript that no correct program raises,
// such as a missing key or a reference to nothing.
//
// An exception for a failed request is not a Panic, whether it is caught or not: a program may log
// such an exception, and may also exit because of it.
type Panic struct {
	// Line is the line that names the mistake.
	Line string
	// Text contains Line and the lines around it, such as the stack.
	Text string
	// Frame is the first function on a Go stack that belongs to the program rather than to a
	// library, such as "main.(*Reconciler).Reconcile (reconciler.go:57)", or "".
	Frame string
}

// These constants limit how much of a panic is kept.
const (
	mostContext = 64       // lines; the program's own function may be below those of libraries
	mostLine    = 64 << 10 // bytes; a JSON log entry contains a complete stack
)

// FindPanic returns the first panic in a text, or a zero Panic if there is none.
func FindPanic(text string) Panic {
	var s scanner
	s.write([]byte(text))
	return s.end()
}

var (
	// These match panics of Go's runtime, net/http, klog and controller-runtime, and of Rust.
	panics = regexp.MustCompile(`^panic: |^fatal error: |Observed a panic|panic: .*\[recovered\]|http: panic serving |^thread '.*' (?:\(\d+\) )?panicked at `)
	// Java and JavaScript, where the message is followed by a stack.
	stacked = regexp.MustCompile(`^(?:Caused by: )?(?:java\.(?:lang|util)\.)(?:` + javaMistakes + `)\b|^(?:TypeError|ReferenceError|RangeError|AssertionError)(?: \[\w+\])?: `)
	// Java and JavaScript, where nothing caught the error.
	uncaught = regexp.MustCompile(`^Exception in thread "[^"]*" java\.(?:lang|util)\.(?:` + javaMistakes + `)\b|(?:Uncaught(?: Exception)?:?|UnhandledPromiseRejection(?:Warning)?:) (?:TypeError|ReferenceError|RangeError|AssertionError)\b`)
	// The last line of a traceback in Python.
	python = regexp.MustCompile(`^(?:AssertionError|AttributeError|IndexError|KeyError|NameError|NotImplementedError|RecursionError|TypeError|UnboundLocalError|ZeroDivisionError)(?::|$)`)
	// fetch reports a broken connection as a TypeError.
	connection = regexp.MustCompile(`TypeError: (?:fetch failed|terminated|Failed to fetch)`)
)

const javaMistakes = `ArithmeticException|ArrayIndexOutOfBoundsException|AssertionError|ClassCastException|ConcurrentModificationException|` +
	`ExceptionInInitializerError|IndexOutOfBoundsException|NegativeArraySizeException|NoClassDefFoundError|NoSuchElementException|` +
	`NoSuchMethodError|NullPointerException|OutOfMemoryError|StackOverflowError|StringIndexOutOfBoundsException|UnsupportedOperationException`

// scanner finds the first panic in an output that arrives in pieces.
type scanner struct {
	partial []byte // the line that is not complete yet
	found   []string
	line    string // the line of the panic, once it is found
	head    string // a line that is a panic if a stack follows
	trace   []string
	// pending is a traceback in Python that is a panic, unless it turns out that the
	// exception was caught and led to another one.
	pending []string
}

func (s *scanner) write(p []byte) {
	for len(p) > 0 && !s.done() {
		piece, rest, complete := bytes.Cut(p, []byte("\n"))
		p = rest
		if room := mostLine - len(s.partial); len(piece) > room {
			piece = piece[:room]
		}
		s.partial = append(s.partial, piece...)
		if complete {
			s.next(strings.TrimRight(string(s.partial), "\r"))
			s.partial = s.partial[:0]
		}
	}
}

func (s *scanner) done() bool { return len(s.found) >= mostContext }

// end returns the panic once the output is complete.
func (s *scanner) end() Panic {
	if len(s.partial) > 0 && !s.done() {
		s.next(string(s.partial))
		s.partial = nil
	}
	if s.line == "" && s.pending != nil {
		s.take(s.pending)
	}
	text := strings.ToValidUTF8(strings.TrimSpace(strings.Join(s.found, "\n")), "")
	return Panic{Line: strings.ToValidUTF8(s.line, ""), Text: text, Frame: ownFrame(text)}
}

// next examines one line.
func (s *scanner) next(line string) {
	switch {
	case s.line != "":
		s.found = append(s.found, line)
	case s.head != "" && strings.HasPrefix(strings.TrimLeft(line, " \t"), "at "):
		s.line, s.found = s.head, []string{s.head, line}
	case s.traceback(line):
	case suspicious(line) && (panics.MatchString(line) || uncaught.MatchString(line)):
		s.line, s.found = strings.TrimSpace(line), []string{line}
	default:
		s.head = ""
		if suspicious(line) && stacked.MatchString(line) && !connection.MatchString(line) {
			s.head = line
		}
	}
}

// suspicious reports whether a line may be a panic. It is much faster than the patterns, and
// a controller may print thousands of lines a second.
func suspicious(line string) bool {
	if line == "" {
		return false
	}
	switch line[0] {
	case 'f', 'j', 'C', 'E', 'T', 'R', 'A': // the first letters of patterns that contain no word below
		return true
	}
	return strings.Contains(line, "panic") || strings.Contains(line, "Uncaught") || strings.Contains(line, "Unhandled")
}

// take records a complete traceback as the panic. The last line of the traceback names the mistake.
func (s *scanner) take(lines []string) {
	s.line, s.found, s.pending = lines[len(lines)-1], lines, nil
}

// traceback collects the lines of Python tracebacks, and reports whether a line belongs to one.
func (s *scanner) traceback(line string) bool {
	if s.pending != nil && line != "" {
		if strings.HasPrefix(line, "During handling of the above exception") || strings.HasPrefix(line, "The above exception was the direct cause") {
			s.pending = nil
			return true
		}
		s.take(s.pending)
		s.found = append(s.found, line)
		return true
	}
	switch {
	case s.pending != nil:
	case strings.HasSuffix(line, "Traceback (most recent call last):"):
		s.trace = []string{line}
	case s.trace == nil:
		return false
	default:
		if len(s.trace) == mostContext-2 {
			s.trace = append(s.trace[:1], s.trace[2:]...) // the last calls show the mistake
		}
		s.trace = append(s.trace, line)
		if line == "" || line[0] == ' ' || line[0] == '\t' {
			break
		}
		if python.MatchString(line) {
			s.pending = s.trace
		}
		s.trace = nil
	}
	return true
}
