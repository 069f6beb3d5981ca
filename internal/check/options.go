package check

import (
	"fmt"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Options configure a check.
type Options struct {
	Subject   subject.Subject
	Scenarios []*scenario.Scenario
	// Generated reports whether the scenarios were made from samples: a step that
	// the cluster refuses is then left out.
	Generated bool
	// Profile names the plane's controllers; OldServer makes the API server refuse
	// streaming lists.
	Profile   string
	OldServer bool
	// Seed determines all random choices.
	Seed uint64
	// Budget limits the time for faults, and before that the time for learning
	// scenarios; zero means no limit.
	Budget time.Duration
	// Shard of Shards is the part of the plan to run; zero Shards means all of it.
	Shard, Shards int
	// Workers is the number of concurrent labs; zero means as many as the machine has
	// room for.
	Workers int
	// StopAtFirst ends the check at the first confirmed finding.
	StopAtFirst bool
	// Faults are the kinds to run; empty means all.
	Faults []fault.Kind
	// First are faults to run before the others, by scenario: those with a finding in
	// the previous check.
	First map[string][]fault.Fault
	// Only runs the faults in First and no others.
	Only bool
	// PlanOnly makes the plan but runs no fault.
	PlanOnly bool
	// Sources are files of the project that findings can point at; Files are the
	// files that the scenarios came from, by scenario.
	Sources report.Sources
	Files   map[string]string
	// Command is the command line of the check, for the report.
	Command string
	// Observer is notified of progress; nil disables it.
	Observer Observer
	// Program is the executable of a lab with its arguments.
	Program []string
	// Dir is a folder for temporary files.
	Dir string
}

// Observer is notified of a check's progress.
type Observer interface {
	Phase(name string)
	Total(faults int)
	Done(kind fault.Kind, took time.Duration)
	Found(judge.Finding)
	Note(text string)
}

// Result is the result of a check.
type Result struct {
	Report *report.Report
	// Traces belong to the findings, by ID; Scenarios are the scenarios as they were
	// run, by name.
	Traces    map[string][]trace.Entry
	Scenarios map[string]*scenario.Scenario
	// Plan lists the faults to run, Skipped those that were not worth a run.
	Plan    []plan.Planned
	Skipped []plan.Skipped
}

// silent is an Observer that ignores everything.
type silent struct{}

func (silent) Phase(string)                   {}
func (silent) Total(int)                      {}
func (silent) Done(fault.Kind, time.Duration) {}
func (silent) Found(judge.Finding)            {}
func (silent) Note(string)                    {}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
