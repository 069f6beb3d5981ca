package check

import (
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/journal"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/opinions"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/programs"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Options configure a check.
type Options struct {
	Subject   subject.Subject
	Scenarios []*scenario.Scenario
	// Generated reports whether the scenarios were generated from samples. In generated
	// scenarios, steps that the cluster refuses are left out.
	Generated bool
	// Trials are the inputs to try: changes of single fields of the samples.
	Trials []*scenario.Trials
	// Strict makes remarks about inputs findings.
	Strict bool
	// SuiteOutput is called with the output of the test suite in a run without a fault. It may be nil.
	SuiteOutput func(text string)
	// Paths are generated scenarios that get no faults: they reach states on different ways.
	Paths []*scenario.Scenario
	// UpdateBudget makes the check measure a new budget of requests instead of comparing the requests
	// with the budget in Opinions; see Result.Budget.
	UpdateBudget bool
	// Upgrade makes the check upgrade the controller instead of injecting faults. It is nil in any
	// other check.
	Upgrade *Upgrade
	// Profile names the controllers of the plane. ProfileChosen reports whether the profile was
	// chosen automatically, for the reason in ProfileReason; learning may then show that another
	// profile is needed. OldServer makes the API server refuse streaming lists.
	Profile       string
	ProfileChosen bool
	ProfileReason string
	OldServer     bool
	// Kubernetes is the minor version that the planes emulate. Empty means the default version.
	Kubernetes string
	// Programs maps images to the programs that really run in the Pods.
	Programs programs.Set
	// Seed determines all random choices.
	Seed uint64
	// Budget limits the time of the whole check; zero means no limit.
	Budget time.Duration
	// MaxInconclusive is the share of runs that may be inconclusive.
	MaxInconclusive float64
	// Save saves a finding and the profile in which it was found to a file. It is called for each
	// finding as soon as the finding is confirmed, and for each finding that could not be
	// confirmed. It may be nil.
	Save func(f *judge.Finding, profile string, sc *scenario.Scenario, entries []trace.Entry) error
	// Journal records the progress of the check; nil means no record. Known holds the records of an
	// interrupted check that this check continues; nil means that the check is new.
	Journal *journal.Journal
	Known   *journal.Known
	// Notes are added to the notes of the report.
	Notes []string
	// Hurry is closed when everything is to be stopped immediately. It may be nil.
	Hurry <-chan struct{}
	// Horizon is the time for which each rest is watched without a fault. If it is zero,
	// no rest is watched. EveryRest makes the check watch all rests, even if this takes
	// long compared with the faults.
	Horizon   time.Duration
	EveryRest bool
	// Shard is the number of the part to run, and Shards is the number of parts of the
	// plan. If Shards is zero, the complete plan is run.
	Shard, Shards int
	// Handed is a plan that another process has learnt. The check runs its part of that plan instead of
	// a part of its own, so that several processes share one plan even if what they learn differs. If it
	// is nil, the check makes the plan itself.
	Handed []plan.Planned
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
	// Opinions are the settings of the project, and OpinionsFile is the file that holds
	// them. Apply has already applied the settings to the scenarios.
	Opinions     opinions.Opinions
	OpinionsFile string
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
	// Profile is the profile of the planes. It differs from Options.Profile if the automatically
	// chosen profile was too small.
	Profile string
	// Traces holds the traces of the findings, keyed by ID. Scenarios holds the scenarios as they
	// were run, keyed by name. Watched maps each rest that was watched to the time for which it was
	// watched.
	Traces    map[string][]trace.Entry
	Scenarios map[string]*scenario.Scenario
	Watched   map[Rest]time.Duration
	// Recovered lists the faults in Options.First that no longer lead to a finding. Compared
	// lists the scenarios that were learnt completely, and Converted names the conversions that were tried
	// completely, and lost nothing.
	Recovered []plan.Planned
	Compared  []string
	Converted []string
	// Budget holds the numbers of requests of each scenario, if Options.UpdateBudget is set. NoBudget is
	// the reason why some scenarios are missing; then the budget must not be stored.
	Budget   map[string]map[string]int32
	NoBudget string
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
