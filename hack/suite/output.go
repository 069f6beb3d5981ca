package main

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// output turns the output of a part into a log, counts the tests, and keeps the output of
// the tests that failed.
//
// The output of a part consists of the events of `go test -json` and lines that other
// programs print.
type output struct {
	log  io.Writer
	rest []byte // the start of a line that is not complete yet

	tests int
	// running holds the output of tests that have not ended yet, keyed by package and
	// top-level test.
	running map[string]*bytes.Buffer
	kept    bytes.Buffer
	err     error
}

// event is one line of the output of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// ginkgoSummary matches the line in which Ginkgo reports the number of specs that ran. go
// test counts such a suite as a single test. The line may be coloured.
var ginkgoSummary = regexp.MustCompile(`^(?:\x1b\[[0-9;]*m)*Ran (\d+) of \d+ Specs in `)

// plainSummary matches the last line of programs that run tests without go test.
var plainSummary = regexp.MustCompile(`^(?:\w+: )?(\d+) passed, (\d+) failed`)

func newOutput(log io.Writer) *output {
	return &output{log: log, running: map[string]*bytes.Buffer{}}
}

func (o *output) Write(p []byte) (int, error) {
	o.rest = append(o.rest, p...)
	for {
		line, rest, whole := bytes.Cut(o.rest, []byte("\n"))
		if !whole {
			return len(p), o.err
		}
		o.line(string(line))
		o.rest = rest
	}
}

func (o *output) close() error {
	if len(o.rest) > 0 {
		o.line(string(o.rest))
		o.rest = nil
	}
	return o.err
}

// failure returns all output except the output of passing tests. It includes the output
// of tests that never ended.
func (o *output) failure() []byte {
	for _, unfinished := range o.running {
		o.kept.Write(unfinished.Bytes())
	}
	clear(o.running)
	return o.kept.Bytes()
}

func (o *output) line(line string) {
	var e event
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		o.plain(line)
		return
	}
	top, _, _ := strings.Cut(e.Test, "/")
	key := e.Package + " " + top
	switch e.Action {
	case "build-output":
		o.write(&o.kept, e.Output)
	case "output":
		if n := ginkgoSummary.FindStringSubmatch(e.Output); n != nil {
			o.count(n[1])
		}
		o.write(o.sink(key, e.Test), e.Output)
	case "pass", "skip", "fail":
		o.end(key, e)
	}
}

// sink returns the buffer for the output of a test. If test is empty, it returns the
// buffer of the package.
func (o *output) sink(key, test string) *bytes.Buffer {
	if test == "" {
		return &o.kept
	}
	if o.running[key] == nil {
		o.running[key] = &bytes.Buffer{}
	}
	return o.running[key]
}

func (o *output) end(key string, e event) {
	if e.Test == "" || strings.Contains(e.Test, "/") {
		return
	}
	if e.Action != "skip" {
		o.tests++
	}
	if e.Action == "fail" {
		o.kept.Write(o.running[key].Bytes())
	}
	delete(o.running, key)
}

func (o *output) plain(line string) {
	if n := plainSummary.FindStringSubmatch(line); n != nil {
		o.count(n[1])
		o.count(n[2])
	}
	o.write(&o.kept, line+"\n")
}

func (o *output) count(digits string) {
	n, err := strconv.Atoi(digits)
	if err == nil {
		o.tests += n
	}
}

func (o *output) write(to *bytes.Buffer, text string) {
	to.WriteString(text)
	if _, err := io.WriteString(o.log, text); err != nil && o.err == nil {
		o.err = err
	}
}
