package output

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	// frames matches the functions on a Go stack, each with its file and line.
	frames = regexp.MustCompile(`(?m)^(\S.*)\(.*\)\n\t(\S+\.go):(\d+)`)
	// escaped replaces the escapes of a logger that prints a stack on one line.
	escaped = strings.NewReplacer(`\n`, "\n", `\t`, "\t")
)

// Reason returns what best explains why a program exited: the line of a panic with the
// function that caused it, or else the last line of the output.
func Reason(text string) string {
	p := FindPanic(text)
	switch {
	case p.Line == "":
		return lastWord(text)
	case p.Frame == "":
		return strings.TrimSpace(p.Line)
	}
	return strings.TrimSpace(p.Line) + ", in " + p.Frame
}

// nodeError matches the line with which Node.js shows an error that nothing caught.
var nodeError = regexp.MustCompile(`(?m)^(?:Uncaught )?\w*Error(?: \[\w+\])?: .+$`)

// lastWord returns the last line of the output. When Node.js ends with an error, this line is
// only its version, so lastWord returns the line with the error.
func lastWord(text string) string {
	last := LastLine(text)
	if errors := nodeError.FindAllString(text, -1); strings.HasPrefix(last, "Node.js v") && len(errors) > 0 {
		return errors[len(errors)-1]
	}
	return last
}

// ownFrame returns the first function of the program on the stack in a text, or "".
func ownFrame(text string) string {
	if found := firstOwn(text); found != "" {
		return found
	}
	return firstOwn(escaped.Replace(text))
}

// firstOwn returns the first function on a stack that belongs to neither Go nor a library.
func firstOwn(stack string) string {
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
