package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// request is a message to a lab; exactly one field is set.
type request struct {
	Setup *lab.Config    `json:"setup,omitempty"`
	Learn *learnRequest  `json:"learn,omitempty"`
	Crash *repeatRequest `json:"crash,omitempty"`
	Again *repeatRequest `json:"again,omitempty"`
	Kept  *repeatRequest `json:"kept,omitempty"`
	Knock *knockRequest  `json:"knock,omitempty"`
	// Control repeats the scenario without a fault. It uses neither the Fault nor the Trace of
	// the knockRequest.
	Control *knockRequest   `json:"control,omitempty"`
	Watch   *watchRequest   `json:"watch,omitempty"`
	Try     *tryRequest     `json:"try,omitempty"`
	Upgrade *upgradeRequest `json:"upgrade,omitempty"`
	Convert *convertRequest `json:"convert,omitempty"`
}

type convertRequest struct {
	Kind   *scenario.Convertible `json:"kind"`
	Within time.Duration         `json:"within"`
	Seed   uint64                `json:"seed"`
}

type upgradeRequest struct {
	Lesson   string          `json:"lesson"`
	Kind     lab.UpgradeKind `json:"kind"`
	Kill     *fault.Fault    `json:"kill,omitempty"`
	Expected []string        `json:"expected,omitempty"`
	Seed     uint64          `json:"seed"`
	Trace    string          `json:"trace"`
}

type tryRequest struct {
	Trials *scenario.Trials `json:"trials"`
	Window time.Duration    `json:"window"`
	Within time.Duration    `json:"within"`
	Seed   uint64           `json:"seed"`
}

type repeatRequest struct {
	Trials *scenario.Trials `json:"trials"`
	Window time.Duration    `json:"window"`
	Seed   uint64           `json:"seed"`
	Trace  string           `json:"trace"`
}

type watchRequest struct {
	Lesson  string        `json:"lesson"`
	Step    string        `json:"step"`
	Horizon time.Duration `json:"horizon"`
	Seed    uint64        `json:"seed"`
	Trace   string        `json:"trace"`
}

type learnRequest struct {
	Scenario  *scenario.Scenario `json:"scenario"`
	Seed      uint64             `json:"seed"`
	Generated bool               `json:"generated"`
	Path      bool               `json:"path,omitempty"` // without faults, see lab.LearnPath
	Trace     string             `json:"trace"`
}

type knockRequest struct {
	Lesson string      `json:"lesson"`
	Fault  fault.Fault `json:"fault"`
	Care   lab.Care    `json:"care"`
	Seed   uint64      `json:"seed"`
	Trace  string      `json:"trace"`
}

// reply is the answer of a lab to one request.
type reply struct {
	// Error is the reason for a failure. Setup reports whether the subject or the scenario
	// caused the failure, and Gone whether the subject kept exiting or sent no request. If
	// Error is set without Setup, the lab can no longer be used.
	Error    string         `json:"error,omitempty"`
	Printed  string         `json:"printed,omitempty"` // the last lines of output of a subject that kept exiting
	Setup    bool           `json:"setup,omitempty"`
	Gone     bool           `json:"gone,omitempty"`
	Lesson   *lab.Lesson    `json:"lesson,omitempty"`
	Outcome  *Outcome       `json:"knocked,omitempty"`
	Watched  *lab.Watched   `json:"watched,omitempty"`
	Tried    []inputs.Tried `json:"tried,omitempty"`
	Upgraded *lab.Upgraded  `json:"upgraded,omitempty"`

	Converted *lab.Converted `json:"converted,omitempty"`
}

// Outcome is the result of one run that was compared with the reference.
type Outcome struct {
	Findings     []judge.Finding `json:"findings,omitempty"`
	NotApplied   string          `json:"notApplied,omitempty"`
	Inconclusive string          `json:"inconclusive,omitempty"`
	// Strayed describes where the run differed from the reference without a fault, if this
	// difference makes the run inconclusive.
	Strayed *evidence.Strayed `json:"strayed,omitempty"`
	Pruned  bool              `json:"pruned,omitempty"`
	Used    []judge.Unused    `json:"used,omitempty"`
	// SecondKills lists the kills during the recovery that are worth a run.
	SecondKills []fault.SecondKill `json:"secondKills,omitempty"`
	// Matched lists the lines of the scenario's ignore list that have matched a field or an
	// object in any run of this lab.
	Matched []string      `json:"matched,omitempty"`
	Took    time.Duration `json:"took"`
	Trace   []trace.Entry `json:"-"`
}

// Lesson is the result of learning a scenario in one lab, stored in a file for the other
// labs.
type Lesson struct {
	*lab.Lesson
	file string
}

// A SetupError reports a problem with the subject or a scenario that makes a check of this
// scenario impossible. Gone reports whether the controller kept exiting before it had any
// work, or never sent a request.
type SetupError struct {
	Text string
	Gone bool
	// Printed holds the last lines of output of a controller that kept exiting.
	Printed string
}

func (e *SetupError) Error() string { return e.Text }

func (r *reply) err(number int) error {
	if r.Setup {
		return &SetupError{r.Error, r.Gone, r.Printed}
	}
	return &LabError{Number: number, Said: r.Error, alive: true}
}

// A LabError reports a lab that exited unexpectedly or cannot be used any longer.
type LabError struct {
	Number int
	Said   string

	alive bool // the process did not exit
}

// Reason describes what happened to the lab.
func (e *LabError) Reason() string {
	if e.alive {
		return fmt.Sprintf("plane %d failed: %s", e.Number, e.Said)
	}
	return fmt.Sprintf("plane %d exited unexpectedly: %s", e.Number, e.Said)
}

func (e *LabError) Error() string {
	return e.Reason() + "; the controller could not be checked; try again, with --workers=1 if memory is scarce"
}

func writeLesson(dir string, l *lab.Lesson) (*Lesson, error) {
	data, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("storing the results of scenario %s without a fault: %w", l.Scenario.Name, err)
	}
	// The labs keep the lessons that they have read, so a scenario that is learnt again
	// needs another file.
	file, err := os.CreateTemp(dir, "lesson-"+l.Scenario.Name+"-*.json")
	if err != nil {
		return nil, fmt.Errorf("storing the results of scenario %s without a fault: %w", l.Scenario.Name, err)
	}
	_, err = file.Write(data)
	if closing := file.Close(); err == nil {
		err = closing
	}
	return &Lesson{l, file.Name()}, err
}

func readLesson(file string) (*lab.Lesson, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	l := &lab.Lesson{}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return l, nil
}

// writeTrace stores a trace for the parent process.
func writeTrace(path string, entries []trace.Entry) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var text strings.Builder
	err = trace.Write(&text, trace.Header{Started: time.Now()}, entries)
	if err == nil {
		_, err = file.WriteString(scrub.Known.Text(text.String()))
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("writing the trace %s: %w", path, err)
	}
	return nil
}

// readTrace reads a trace and removes its file. If the run found nothing, there is no
// trace, and readTrace returns nil.
func readTrace(path string) []trace.Entry {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	_, entries, err := trace.Read(file)
	if err != nil {
		return nil
	}
	_ = os.Remove(path)
	return entries
}
