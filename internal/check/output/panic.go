package output

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	// panicked matches the output of a panic: from Go's runtime, from controller-runtime and
	// client-go when they recover from it, and from Rust.
	panicked = regexp.MustCompile(`(?m)^panic: .*|^fatal error: .*|Observed a panic.*|panic: .*\[recovered\].*|^thread '.*' panicked at.*`)
	// frames matches the functions on a Go stack, each with its file and line.
	frames = regexp.MustCompile(`(?m)^(\S.*)\(.*\)\n\t(\S+\.go):(\d+)`)
	// escaped replaces the escapes of a logger that prints a stack on one line.
	escaped = strings.NewReplacer(`\n`, "\n", `\t`, "\t")
)

// A Panic is the part of a program's output that explains why it panicked.
type Panic struct {
	// Line is the line that gives the reason. Frame is the first function on the stack that
	// belongs to the program rather than to a library, such as
	// "main.(*Reconciler).Reconcile (reconciler.go:57)", or "".
	Line, Frame string
	// Text is the output from Line on.
	Text string
}

// FindPanic returns the first panic in the output of a program, or nil.
func FindPanic(text string) *Panic {
	at := panicked.FindStringIndex(text)
	if at == nil {
		return nil
	}
	p := &Panic{Line: strings.TrimSpace(text[at[0]:at[1]]), Text: text[at[0]:]}
	if p.Frame = ownFrame(p.Text); p.Frame == "" {
		p.Frame = ownFrame(escaped.Replace(p.Text))
	}
	return p
}

func (p *Panic) String() string {
	if p.Frame == "" {
		return p.Line
	}
	return p.Line + ", in " + p.Frame
}

// Reason returns what best explains why a program exited: the line of a panic with the
// function that caused it, or else the last line of the output.
func Reason(text string) string {
	if p := FindPanic(text); p != nil {
		return p.String()
	}
	return LastLine(text)
}

// ownFrame returns the first function on a stack that belongs to neither Go nor a library.
func ownFrame(stack string) string {
	for _, m := range frames.FindAllStringSubmatch(stack, -1) {
		function, file, line := m[1], m[2], m[3]
		if foreignFrame(function, file) {
			continue
		}
		return fmt.Sprintf("%s (%s:%s)", function[strings.LastIndexByte(function, '/')+1:], path.Base(file), line)
	}
	return ""
}

// foreignFrame reports whether a function belongs to Go or to a library. The files of
// libraries have a version or the folder vendor in their path. Files of Go's own packages
// are below src, and the first part of their import path has no dot.
func foreignFrame(function, file string) bool {
	if strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, "runtime/") || function == "panic" {
		return true
	}
	if strings.Contains(file, "@v") || strings.Contains(file, "/vendor/") {
		return true
	}
	dir := path.Dir(file)
	pkg, _, _ := strings.Cut(function[strings.LastIndexByte(function, '/')+1:], ".")
	pkg = function[:strings.LastIndexByte(function, '/')+1] + pkg
	first, _, _ := strings.Cut(pkg, "/")
	return path.IsAbs(file) && !strings.Contains(first, ".") && strings.HasSuffix(dir, "/src/"+pkg)
}
