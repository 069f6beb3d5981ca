package check

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/journal"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/opinions"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// outcome collects the results of the labs. Several labs may report at the same time.
type outcome struct {
	Options
	began time.Time
	tally *tally

	mu      sync.Mutex
	used    map[judge.Unused]bool      // permissions that only runs with a fault needed
	lessons map[string]*fleet.Lesson   // keyed by the name of the scenario
	ignored map[string]map[string]bool // the lines of the ignore list that matched, by scenario
	result  *Result
	// neverUp reports whether no scenario has been learnt, and the controller kept exiting before
	// it had any work in the last scenario that failed.
	neverUp bool
	printed string // the last lines of its output, indented
	// perPlane is the time that the first planes took to start, divided by their number.
	perPlane time.Duration
}

func newOutcome(o Options) *outcome {
	if o.Observer == nil {
		o.Observer = silent{}
	}
	profile := o.Profile
	if o.ProfileReason != "" {
		profile += ": " + o.ProfileReason
	}
	r := &report.Report{
		Version: 1, Profile: profile, Subject: o.Subject.Name, Command: o.Command, Args: o.Args, Seed: o.Seed, Started: time.Now(),
		Strict: o.Strict, Sources: o.Sources, MaxInconclusive: &o.MaxInconclusive, Notes: slices.Clone(o.Notes),
	}
	if r.Settings = o.Opinions.Summary(); len(r.Settings) > 0 {
		r.SettingsFile = o.OpinionsFile
	}
	if o.Shards > 1 {
		r.Shard = fmt.Sprintf("%d/%d", o.Shard, o.Shards)
	}
	return &outcome{
		Options: o, began: time.Now(), lessons: map[string]*fleet.Lesson{}, used: map[judge.Unused]bool{}, ignored: map[string]map[string]bool{}, tally: newTally(r),
		result: &Result{Report: r, Profile: o.Profile, Traces: map[string][]trace.Entry{}, Scenarios: map[string]*scenario.Scenario{}, Watched: map[Rest]time.Duration{}},
	}
}

// learnt adds the lesson of a scenario, and the findings that occurred without a fault.
func (o *outcome) learnt(l *fleet.Lesson) {
	o.describe(l)
	o.matched(l.Scenario.Name, l.Matched)
	o.tally.learnt(l.Runs)
	if o.SuiteOutput != nil && l.SuiteOutput != "" {
		o.SuiteOutput(l.SuiteOutput)
	}
	if o.isTooSmallFor(l) {
		return // what was found may only be due to the profile
	}
	for _, f := range l.Findings {
		o.faultless(f, l)
	}
}

// faultless adds a finding that occurred without a fault.
func (o *outcome) faultless(f judge.Finding, l *fleet.Lesson) {
	if f.Seed = o.Seed; f.Attempts == 0 {
		f.Attempts, f.Reproduced = l.Runs, l.Runs
	}
	f.FoundAfterRuns, f.FoundAfterSeconds = o.tally.runs(), time.Since(o.began).Seconds()
	o.mu.Lock()
	known := o.result.Report.Has(f)
	o.mu.Unlock()
	if !known {
		o.kept(&f, l.Trace)
	}
	o.mu.Lock()
	o.result.Report.Add(f)
	o.mu.Unlock()
}

// isTooSmallFor reports whether the automatically chosen profile lacks controllers that a
// scenario needs. The check then starts again in another profile.
func (o *outcome) isTooSmallFor(l *fleet.Lesson) bool {
	return o.ProfileChosen && o.Profile == subject.ProfileGC && l.Workloads
}

// addScenario adds a scenario to the result, without which a finding in it could not be saved.
func (o *outcome) addScenario(sc *scenario.Scenario) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.result.Scenarios[sc.Name] = sc
}

// describe adds the scenario of a lesson to the report.
func (o *outcome) describe(l *fleet.Lesson) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lessons[l.Scenario.Name] = l
	o.result.Scenarios[l.Scenario.Name] = l.Scenario
	r := o.result.Report
	learnt := report.Scenario{Name: l.Scenario.Name, File: o.Files[l.Scenario.Name], Kind: o.kindOf(l.Scenario), Steps: len(l.Scenario.Steps), Writes: l.Writes, Seconds: l.Took.Seconds()}
	if l.Reference != nil {
		learnt.Masked, learnt.Unseen, learnt.Blind = slices.Concat(l.Reference.Mask.Fields(), l.Reference.Grown()), l.Reference.Mask.Unseen(), l.Reference.Blind
		if !slices.Contains(o.result.Compared, l.Scenario.Name) {
			o.result.Compared = append(o.result.Compared, l.Scenario.Name)
		}
	}
	r.Scenarios = append(r.Scenarios, learnt)
	for _, text := range l.Dropped {
		r.Notes = append(r.Notes, "left out: "+text)
	}
	for _, note := range slices.Concat(l.Notes, l.Missing) {
		if !slices.Contains(r.Notes, note) {
			r.Notes = append(r.Notes, note)
		}
	}
	if note := electing(l.Lease, l.Elections); l.Lease > 0 && !slices.Contains(r.Notes, note) {
		r.Notes = append(r.Notes, note)
	}
}

// electing returns the note about a controller that elects a leader in every run. The note states
// what Koboshi assumed about the Lease.
func electing(lease time.Duration, elections []string) string {
	if len(elections) > 0 {
		return fmt.Sprintf("the controller elects a leader in every run: after a kill, Koboshi released the Lease %s, as if it had expired while the controller was down (%s)",
			strings.Join(elections, ", "), lease)
	}
	return fmt.Sprintf("the controller elects a leader in every run, so after a kill its successor may wait up to %s for the Lease to expire; "+
		"runs are shorter if the controller elects a leader only when it gets the arguments in --election", lease)
}

// notLearnt records that a scenario could not be run without a fault.
func (o *outcome) notLearnt(sc *scenario.Scenario, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.result.Report.NotLearnt = append(o.result.Report.NotLearnt, report.NotLearnt{Scenario: sc.Name, Why: why})
}

// kindOf returns the kind that a scenario is about: the kind of the first object in its
// steps that the controller reconciles.
func (o *outcome) kindOf(sc *scenario.Scenario) string {
	for _, step := range sc.Steps {
		for _, m := range step.Apply {
			version, _ := m.Object["apiVersion"].(string)
			kind, _ := m.Object["kind"].(string)
			name := schema.FromAPIVersionAndKind(version, kind).GroupKind().String()
			if slices.Contains(o.Subject.Primary, name) {
				return name
			}
		}
	}
	return ""
}

// kept adds the lines of koboshi.yaml that would accept a finding, stores the finding's trace,
// saves the finding and announces it.
func (o *outcome) kept(f *judge.Finding, entries []trace.Entry) {
	f.Silence = opinions.Silence(*f)
	if f.NeedsStrict() && !o.Strict {
		return // the notes list it
	}
	o.save(f, entries)
	o.mu.Lock()
	o.result.Traces[f.ID] = entries
	o.mu.Unlock()
	o.Observer.Found(*f)
}

// save saves a finding, but not a remark, to a file. If that fails, for example because the
// disk is full, the finding is still reported.
func (o *outcome) save(f *judge.Finding, entries []trace.Entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sc := o.result.Scenarios[f.Scenario]
	if o.Save == nil || sc == nil || f.Verdict.IsRemark() {
		return
	}
	if err := o.Save(f, o.Profile, sc, entries); err != nil {
		o.noted(fmt.Sprintf("a finding is not saved: %v", err))
	}
}

// noted adds a note to the report, unless the report has the note already. The caller holds the
// lock.
func (o *outcome) noted(text string) {
	if r := o.result.Report; !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

func (o *outcome) note(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.noted(text)
}

// hasEnough reports whether the check stops at its first finding, and has one.
func (o *outcome) hasEnough() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.StopAtFirst && len(o.result.Report.Findings) > 0
}

// hasShown reports whether the check has a finding or a remark.
func (o *outcome) hasShown() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.result.Report.Findings)+len(o.result.Report.Remarks) > 0
}

// hasTried reports whether the controller's reaction to an input is known.
func (o *outcome) hasTried() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.result.Report.Inputs, func(i report.Input) bool { return i.Outcome != string(inputs.Unknown) })
}

// doubtful stores a finding that was not confirmed, with its trace. An unconfirmed finding
// may be caused by a rare race.
func (o *outcome) doubtful(p plan.Planned, entries []trace.Entry, f judge.Finding, why string) {
	if f.Verdict.IsRemark() {
		return // a remark that may be wrong has no use
	}
	o.save(&f, entries)
	o.tally.doubtful(p, f, why)
	o.Journal.Doubtful(journal.Doubtful{Scenario: p.Scenario, Fault: p.Fault, Finding: f, Why: why})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.result.Traces[f.ID] = entries
}

// report completes the report.
func (o *outcome) report(found []judge.Finding) *Result {
	r := o.result.Report
	o.dropUnwatched()
	o.dropOwn()
	r.Add(found...)
	o.requests()
	r.Notes = append(r.Notes, o.idleIgnores()...)
	r.Tried = o.tally.all()
	if o.Upgrade == nil { // an upgrade uses only a part of the permissions
		r.Unused = o.unused()
	}
	r.Seconds = time.Since(o.began).Seconds()
	r.Sort()
	return o.result
}

// dropOwn removes the notes about objects that the controller requested in one scenario, but makes
// itself in another scenario.
func (o *outcome) dropOwn() {
	r := o.result.Report
	for _, l := range o.lessons {
		r.Notes = slices.DeleteFunc(r.Notes, func(note string) bool { return slices.Contains(l.Own, note) })
	}
}

// needed remembers permissions that a run with a fault needed.
func (o *outcome) needed(used []judge.Unused) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, u := range used {
		o.used[u] = true
	}
}

// unused lists the permissions that no run needed, in any scenario. A permission may be needed
// only after a fault, for example to read what another instance has written.
func (o *outcome) unused() (unused []judge.Unused) {
	first := true
	for _, l := range o.lessons {
		if first {
			unused, first = slices.Clone(l.Unused), false
		}
		unused = slices.DeleteFunc(unused, func(u judge.Unused) bool { return o.used[u] || !slices.Contains(l.Unused, u) })
	}
	return unused
}
