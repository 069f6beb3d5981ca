// Package checking runs koboshi check in the background of koboshi dev: while nothing is edited,
// the last build is checked, and what an edit has broken is reported in the loop.
//
//	a round begins ──▶ end the check
//	a round ends ──▶ wait until nothing is edited ──▶ start a check ──▶ compare with the findings so far
//
// A check saves each finding as soon as it is confirmed, so it is reported before the check ends.
//
// The check is a child process with low priority. It builds and checks the project as the same
// command on the command line would.
package checking

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/check/report"
)

// stopGrace is how long a check may take to write its report after an edit has stopped it.
const stopGrace = 10 * time.Second

// lookEvery is the time between two looks at the findings that a check has saved.
const lookEvery = time.Second

// Options describe the check.
type Options struct {
	// Command returns the complete command line of a check, and its environment. The check writes
	// its report as JSON to the file Report.
	Command func() (command, env []string, err error)
	Report  string
	// Findings is the folder in which the check saves its findings.
	Findings string
	// Dir is the working directory.
	Dir string
	// Idle is the time without an edit after which a check starts.
	Idle time.Duration
	// Note receives one sentence without a period.
	Note func(string)
}

// Checker runs one check at a time.
type Checker struct {
	events chan event
	ended  chan struct{}
	stop   context.CancelFunc
}

// event reports that a round begins or has ended.
type event struct {
	begins bool
	files  []string // of a round that ends
	runs   bool     // whether the manager runs with these files
}

// Start returns a checker that waits for the end of the first round.
func Start(ctx context.Context, o Options) *Checker {
	ctx, cancel := context.WithCancel(ctx)
	c := &Checker{events: make(chan event), ended: make(chan struct{}), stop: cancel}
	w := &worker{Options: o, known: map[string]judge.Finding{}}
	go func() {
		defer close(c.ended)
		w.run(ctx, c.events)
	}()
	return c
}

// Begin ends the check, because a round begins.
func (c *Checker) Begin() { c.tell(event{begins: true}) }

// End schedules a check if the manager runs with the files of the round that has ended.
func (c *Checker) End(files []string, runs bool) { c.tell(event{files: files, runs: runs}) }

func (c *Checker) tell(e event) {
	select {
	case c.events <- e:
	case <-c.ended:
	}
}

// Close ends the check, and waits for its end.
func (c *Checker) Close() {
	c.stop()
	<-c.ended
}

// worker is the state of a checker. Only its own goroutine uses it.
type worker struct {
	Options
	current *process.Process // the check that runs, or nil
	ending  bool             // the check has been asked to end
	due     <-chan time.Time // when the next check starts
	waiting bool             // for the end of the current check, to start the next one

	saved map[string]time.Time // when each file with a finding was written, as of the last look

	files   []string                 // edited since the last complete check
	known   map[string]judge.Finding // by ID
	checked bool                     // a check has been complete
	failed  string                   // the last reason why there was no report
}

func (w *worker) run(ctx context.Context, events <-chan event) {
	looks := time.NewTicker(lookEvery)
	defer looks.Stop()
	for {
		var exited <-chan struct{}
		var tick <-chan time.Time
		if w.current != nil {
			exited, tick = w.current.Exited(), looks.C
		}
		select {
		case e := <-events:
			w.take(e)
		case <-w.due:
			w.due, w.waiting = nil, w.current != nil
			w.start(ctx)
		case <-tick:
			w.look()
		case <-exited:
			w.conclude()
			if w.waiting {
				w.waiting = false
				w.start(ctx)
			}
		case <-ctx.Done():
			if w.current != nil {
				w.current.Stop(stopGrace)
			}
			return
		}
	}
}

func (w *worker) take(e event) {
	w.due, w.waiting = nil, false
	if w.current != nil && !w.ending {
		w.ending = true
		go w.current.Stop(stopGrace)
	}
	if e.begins {
		return
	}
	for _, file := range e.files {
		if !slices.Contains(w.files, file) {
			w.files = append(w.files, file)
		}
	}
	if e.runs {
		w.due = time.After(w.Idle)
	}
}

// start starts a check, unless one is running.
func (w *worker) start(ctx context.Context) {
	if w.current != nil {
		return
	}
	_ = os.Remove(w.Report) // or else it could be taken for that of this check
	w.written()             // those of earlier checks are not new
	command, env, err := w.Command()
	if err != nil {
		w.tellFailure(err.Error())
		return
	}
	if nice, err := exec.LookPath("nice"); err == nil {
		command = append([]string{nice, "-n", "19"}, command...)
	}
	w.ending = false
	w.current, err = process.Start(context.WithoutCancel(ctx), process.Spec{Command: command, Dir: w.Dir, Env: env})
	if err != nil {
		w.tellFailure(err.Error())
	}
}

// conclude reports the findings of a check that has ended.
func (w *worker) conclude() {
	_, printed := w.current.Exit()
	ended := w.ending
	w.current = nil
	r, err := report.ReadFile(w.Report)
	if err != nil {
		if !ended {
			w.tellFailure(cmp.Or(output.Reason(printed), err.Error()))
		}
		return
	}
	for _, f := range r.Findings {
		w.found(f)
	}
	switch {
	case ended:
	case r.ExitCode() == 2:
		w.tellFailure("no result: " + cmp.Or(r.Idle, r.Stopped, "too many runs were inconclusive, or nothing could be compared; run koboshi check"))
	default:
		w.complete(r)
	}
}

// look reports the findings that the check has confirmed since the last look. A file that cannot be read
// is left to the report at the end of the check.
func (w *worker) look() {
	for _, name := range w.written() {
		if s, err := report.LoadFinding(filepath.Join(w.Findings, name)); err == nil && !s.Unconfirmed {
			w.found(s.Finding)
		}
	}
}

// written returns the names of the files with findings that were written since the last call.
func (w *worker) written() (names []string) {
	before := w.saved
	w.saved = map[string]time.Time{}
	entries, _ := os.ReadDir(w.Findings) // the folder does not exist before the first finding
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !report.IsFinding(entry.Name()) {
			continue
		}
		w.saved[entry.Name()] = info.ModTime()
		if !before[entry.Name()].Equal(info.ModTime()) {
			names = append(names, entry.Name())
		}
	}
	return names
}

// found reports a finding, unless it was reported before.
func (w *worker) found(f judge.Finding) {
	if _, known := w.known[f.ID]; known {
		return
	}
	w.known[f.ID] = f
	w.Note(w.text(f))
}

// complete forgets the findings that a check has tried to reproduce and no longer found.
func (w *worker) complete(r *report.Report) {
	for _, f := range r.Fixed {
		delete(w.known, f.ID)
		w.Note(fmt.Sprintf("check: no longer found: %s: %s", f.Verdict, report.Inline(f.Sentence, false)))
	}
	faults := r.Runs - r.References - r.Confirmations
	switch {
	case len(r.Findings) > 0:
	case faults == 0:
		w.Note("check: the time limit was used up before a fault was injected; allow more time")
	default:
		w.Note(fmt.Sprintf("check: no findings with %d faults", faults))
	}
	w.files, w.checked, w.failed = nil, true, ""
}

// text describes a new finding.
func (w *worker) text(f judge.Finding) string {
	since := ""
	switch {
	case !w.checked:
		since = " (no check was complete before)"
	case len(w.files) > 0:
		since = " (new since the edit of " + strings.Join(w.files, ", ") + ")"
	}
	text := fmt.Sprintf("check: %s%s: %s", f.Verdict, since, f.Sentence)
	if f.Replay != "" {
		text += "; replay it with: " + f.Replay
	}
	return report.Inline(text, false)
}

// tellFailure reports once why a check is not possible.
func (w *worker) tellFailure(reason string) {
	if reason != w.failed {
		w.Note("check: not possible: " + report.Inline(reason, false))
	}
	w.failed = reason
}
