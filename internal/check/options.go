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
	// Generated reports whether the scenarios were generated from samples. In generated
	// scenarios, steps that the cluster refuses are left out.
	Generated bool
	// Profile names the controllers of the plane. OldServer makes the API server refuse
	// streaming lists.
	Profile   string
	OldServer bool
	// Kubernetes is the minor version that the planes emulate. Empty means the usual one.
	Kubernetes string
	// Seed determines all random choices.
	Seed uint64
	// Budget limits the time for learning scenarios and, separately, the time for faults;
	// zero means no limit.
	Budget time.Duration
	// Shard is the number of the part to run, and Shards is the number of parts of the
	// plan. If Shards is zero, the complete plan is run.
	Shard, Shards int
	// Workers is the number of concurrent labs; zero means as many as the machine has
	// room for.
	Workers int
	// StopAtFirst ends the check at the first confirmed finding.
	StopAtFirst bool
	// Faults are the kinds of fault to run; empty means all kinds.
	Faults []fault.Kind
	// First maps a scenario to the faults that run before all others, because they led to
	// a finding in the previous check.
	First map[string][]fault.Fault
	// Only restricts the check to the faults in First.
	Only bool
	// PlanOnly makes the plan but runs no fault.
	PlanOnly bool
	// Sources are files of the project that findings can refer to. Files maps the name of
	// a scenario to its file.
	Sources report.Sources
	Files   map[string]string
	// Command is the command line of the check, and Args its arguments, for the report.
	Command string
	Args    []string
	// Observer is notified of progress; nil means no notifications.
	Observer Observer
	// Program is the command line that starts a lab.
	Program []string
	// Dir is a folder for temporary files.
	Dir string
}

// Observer is notified of the progress of a check.
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
	// Traces holds the traces of the findings, keyed by ID. Scenarios holds the scenarios
	// as they were run, keyed by name.
	Traces    map[string][]trace.Entry
	Scenarios map[string]*scenario.Scenario
	// Plan lists the faults to run. Skipped lists the faults that are not worth a run.
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
