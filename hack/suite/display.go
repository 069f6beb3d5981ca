package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	terminalInterval = time.Second
	pipeInterval     = 30 * time.Second
	columns          = 79
	// repeated is the number of lines of a failed part that the summary repeats.
	repeated = 60
)

// display prints the progress of the suite. On a terminal it shows the running parts on
// one line, which it rewrites; in a pipe it prints such a line from time to time.
type display struct {
	out      io.Writer
	terminal bool
	began    time.Time
	running  map[string]time.Time
}

func newDisplay(out *os.File) *display {
	d := &display{out: out, began: time.Now(), running: map[string]time.Time{}}
	if info, err := out.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("CI") != "true" {
		d.terminal = true
	}
	return d
}

// follow prints the progress until all parts have ended, then the summary. It returns the
// number of parts that failed.
func (d *display) follow(parts int, started <-chan string, ended <-chan result) int {
	interval := pipeInterval
	if d.terminal {
		interval = terminalInterval
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var results []result
	for len(results) < parts {
		select {
		case target := <-started:
			d.running[target] = time.Now()
		case r := <-ended:
			delete(d.running, r.target)
			results = append(results, r)
			d.ended(r)
		case <-tick.C:
			d.progress(parts - len(results) - len(d.running))
		}
	}
	return d.summary(results)
}

func (d *display) progress(waiting int) {
	var parts []string
	for _, target := range slices.Sorted(maps.Keys(d.running)) {
		parts = append(parts, fmt.Sprintf("%s %s", target, minutes(time.Since(d.running[target]))))
	}
	line := fmt.Sprintf("%s  running: %s", minutes(time.Since(d.began)), strings.Join(parts, ", "))
	if waiting > 0 {
		line += fmt.Sprintf("; %d to come", waiting)
	}
	if d.terminal {
		fmt.Fprintf(d.out, "\r%-*s", columns, line[:min(len(line), columns)])
		return
	}
	fmt.Fprintln(d.out, line)
}

func (d *display) ended(r result) {
	d.clear()
	if r.err != nil {
		fmt.Fprintf(d.out, "\n-- %s: %v; all of its output is in %s\n%s\n", r.target, r.err, r.log, r.failure)
	}
	fmt.Fprintln(d.out, row(r))
}

func (d *display) clear() {
	if d.terminal {
		fmt.Fprintf(d.out, "\r%*s\r", columns, "")
	}
}

// summary prints the results of the suite, and ends with one line for the entire suite. If a part
// failed, it first repeats the end of that part's output and all rows, because a reader of a long
// log starts at its end.
func (d *display) summary(results []result) int {
	failed, tests := 0, 0
	for _, r := range results {
		tests += r.tests
		if r.err != nil {
			failed++
		}
	}
	if failed > 0 {
		for _, r := range results {
			if r.err != nil {
				fmt.Fprintf(d.out, "\n-- the end of the output of %s:\n%s\n", r.target, lastLines(r.failure, repeated))
			}
		}
		fmt.Fprintln(d.out)
		for _, r := range results {
			fmt.Fprintln(d.out, row(r))
		}
	}
	fmt.Fprintf(d.out, "\n%d tests in %s; parts of the suite:\n%d passed, %d failed\n",
		tests, minutes(time.Since(d.began)), len(results)-failed, failed)
	return failed
}

// lastLines returns the last n lines of text.
func lastLines(text []byte, n int) []byte {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}

func row(r result) string {
	verdict := "ok  "
	if r.err != nil {
		verdict = "FAIL"
	}
	return fmt.Sprintf("%s  %-18s %6s  processor time %6s  %4d tests", verdict, r.target, minutes(r.wall), minutes(r.cpu), r.tests)
}

func minutes(d time.Duration) string {
	d = d.Round(time.Second)
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}
