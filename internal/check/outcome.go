package check

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func newCheck(o Options) *check {
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	r := &report.Report{Version: 1, Subject: o.Subject.Name, Command: o.Command, Seed: o.Seed, Started: time.Now(), Sources: o.Sources}
	if o.Shards > 1 {
		r.Shard = fmt.Sprintf("%d/%d", o.Shard, o.Shards)
	}
	return &check{
		Options: o, began: time.Now(), lessons: map[string]*lesson{}, tally: newTally(r), fleet: &fleet{},
		result: &Result{Report: r, Traces: map[string][]trace.Entry{}, Scenarios: map[string]*scenario.Scenario{}},
	}
}

// guard protects what several labs report at once.
var guard sync.Mutex

// learnt keeps a lesson, and what it shows to be wrong without any fault.
func (c *check) learnt(l *lab.Lesson) error {
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("keeping what was learnt of scenario %s: %w", l.Scenario.Name, err)
	}
	file := filepath.Join(c.Dir, "lesson-"+l.Scenario.Name+".json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	guard.Lock()
	c.lessons[l.Scenario.Name] = &lesson{l, file}
	c.result.Scenarios[l.Scenario.Name] = l.Scenario
	r := c.result.Report
	learnt := report.Scenario{Name: l.Scenario.Name, File: c.Files[l.Scenario.Name], Kind: c.kindOf(l.Scenario), Steps: len(l.Scenario.Steps), Writes: l.Writes, Seconds: l.Took.Seconds()}
	if l.Reference != nil {
		learnt.Masked = l.Reference.Mask.Fields()
	}
	r.Scenarios = append(r.Scenarios, learnt)
	for _, text := range l.Dropped {
		r.Notes = append(r.Notes, "left out: "+text)
	}
	if note := electing(l.Lease); l.Lease > 0 && !slices.Contains(r.Notes, note) {
		r.Notes = append(r.Notes, note)
	}
	guard.Unlock()
	c.tally.learnt(l.Runs)
	for _, f := range l.Findings {
		f.Seed, f.Attempts, f.Reproduced = c.Seed, l.Runs, l.Runs
		f.FoundAfterRuns, f.FoundAfterSeconds = c.tally.runs(), time.Since(c.began).Seconds()
		guard.Lock()
		r.Findings = append(r.Findings, f)
		guard.Unlock()
		c.kept(f, l.Trace)
	}
	return nil
}

// electing is what there is to say of a controller that always elects a leader.
func electing(lease time.Duration) string {
	return fmt.Sprintf("the controller elects a leader in each run, so who follows one that was killed waits until its Lease of %s has run out; "+
		"a run takes less if only an argument that --election says makes it elect", lease)
}

// notLearnt notes a scenario for which the budget was not enough.
func (c *check) notLearnt(sc *scenario.Scenario) {
	guard.Lock()
	defer guard.Unlock()
	c.result.Report.Notes = append(c.result.Report.Notes,
		fmt.Sprintf("scenario %s was not run: the budget was used up while others were learnt", sc.Name))
}

// kindOf is the kind that a scenario is about: that of the first object of its
// steps that the controller reconciles.
func (c *check) kindOf(sc *scenario.Scenario) string {
	for _, step := range sc.Steps {
		for _, m := range step.Apply {
			version, _ := m.Object["apiVersion"].(string)
			kind, _ := m.Object["kind"].(string)
			name := schema.FromAPIVersionAndKind(version, kind).GroupKind().String()
			if slices.Contains(c.Subject.Primary, name) {
				return name
			}
		}
	}
	return ""
}

// kept tells of a finding and keeps its trace.
func (c *check) kept(f judge.Finding, entries []trace.Entry) {
	guard.Lock()
	c.result.Traces[f.ID] = entries
	guard.Unlock()
	c.Observer.Found(f)
}

// doubtful keeps what did not stand, with its trace: it may be a race that shows
// seldom.
func (c *check) doubtful(like suspicion, f judge.Finding, why string) {
	c.tally.doubtful(like.planned, f, why)
	guard.Lock()
	defer guard.Unlock()
	c.result.Traces[f.ID] = like.entries
}

// order makes one queue: what found something before goes first.
func (c *check) order(plans []plan.Plan) []plan.Planned {
	if c.StopAtFirst && len(c.result.Report.Findings) > 0 {
		return nil
	}
	all := plan.Order(plans, c.Seed)
	if len(c.Faults) > 0 {
		all = slices.DeleteFunc(all, func(p plan.Planned) bool { return !slices.Contains(c.Faults, p.Fault.Kind) })
	}
	queue := c.before(all)
	if c.Shards > 1 {
		part := plan.Shard(all, c.Shard, c.Shards)
		c.result.Report.LeftToShards = len(all) - len(part)
		all = part
	}
	if !c.Only {
		for _, p := range all {
			if !slices.ContainsFunc(queue, func(q plan.Planned) bool { return q.Scenario == p.Scenario && sameFault(q.Fault, p.Fault) }) {
				queue = append(queue, p)
			}
		}
	}
	for _, p := range queue {
		c.tally.planned(p)
	}
	c.result.Plan = queue
	return queue
}

// sameFault says whether both are the same but for what only names it for people.
func sameFault(a, b fault.Fault) bool {
	a.Behind, b.Behind = 0, 0
	return a == b
}

// before are the faults that are run first.
func (c *check) before(all []plan.Planned) (queue []plan.Planned) {
	for name, faults := range c.First {
		if c.lessons[name] == nil || c.lessons[name].Reference == nil {
			continue
		}
		for _, f := range faults {
			p := plan.Planned{Scenario: name, Fault: f}
			if i := slices.IndexFunc(all, func(p plan.Planned) bool { return p.Scenario == name && sameFault(p.Fault, f) }); i >= 0 {
				p = all[i]
			}
			queue = append(queue, p)
		}
	}
	return queue
}

// report puts together what there is to say.
func (c *check) report(found []judge.Finding) *Result {
	r := c.result.Report
	r.Findings = append(r.Findings, found...)
	r.Tried = c.tally.all()
	r.Notes = append(r.Notes, c.unused()...)
	r.Seconds = time.Since(c.began).Seconds()
	r.Sort()
	return c.result
}

type nobody struct{}

func (nobody) Phase(string)                   {}
func (nobody) Total(int)                      {}
func (nobody) Done(fault.Kind, time.Duration) {}
func (nobody) Found(judge.Finding)            {}
func (nobody) Note(string)                    {}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
