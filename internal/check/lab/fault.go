package lab

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab/inject"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Verdict holds a run and the result of comparing it with the reference.
type Verdict struct {
	Run      *evidence.Run
	Findings []judge.Finding
	// Pruned reports whether the run was cut short because the fault led to a state from
	// which an earlier run had recovered.
	Pruned bool
	// Used lists the permissions that the run needed, although the runs of the lesson did not need
	// them.
	Used []judge.Unused
	// SecondKills lists the kills during the controller's recovery from the fault that are worth a run.
	SecondKills []fault.SecondKill
}

// needsWebhooks explains why a step cannot be performed while the controller is down.
const needsWebhooks = "the API server would have to call the controller's webhooks for this step, and refuses the change while they are down"

// noWebhooks explains why the webhooks of a controller cannot be made unreachable.
const noWebhooks = "the controller serves no webhooks"

// Care describes how patiently a run with a fault observes the controller.
type Care struct {
	// Tail makes the run observe a controller that was killed for the lesson's Tail.
	Tail bool `json:"tail,omitempty"`
	// Later is the additional time that the controller has to recover on its own, for example with a
	// reconcile at regular intervals.
	Later time.Duration `json:"later,omitempty"`
}

// Knock runs a scenario with one fault and judges the result.
func (l *Lab) Knock(ctx context.Context, lesson *Lesson, f fault.Fault, seed uint64, care Care) (*Verdict, error) {
	if why := l.impossible(lesson.Scenario, f); why != "" {
		return &Verdict{Run: &evidence.Run{Scenario: lesson.Scenario.Name, Fault: &f, NotApplied: why}}, nil
	}
	r := &run{
		lab: l, scenario: lesson.Scenario, lesson: lesson, fault: &f, window: lesson.Window, streams: lesson.Streams,
		idle: idle, care: care, out: &evidence.Run{Seed: seed, Fault: &f},
	}
	l.elections.Trust(lesson.Elections)
	out, err := r.do(ctx)
	if err != nil {
		return nil, err
	}
	done := r.injection.Outcome()
	out.Applied = done.Applied
	if done.NotApplied != "" && out.Inconclusive == "" && out.Gone == "" {
		out.Applied, out.NotApplied = false, done.NotApplied
	}
	v := &Verdict{Run: out, Pruned: done.Pruned, Used: l.used(lesson, out)}
	if v.Pruned {
		return v, nil
	}
	v.judge(lesson.Reference, &l.config.Subject)
	if done.State != "" && len(v.Findings) == 0 && out.Applied && out.Inconclusive == "" {
		l.explored[done.State] = true
	}
	if len(v.Findings) == 0 && out.Applied && out.Inconclusive == "" {
		v.SecondKills = plan.SecondKills(l.planning(lesson), out, lesson.Reference.Mask, lesson.Shown)
	}
	return v, nil
}

// impossible returns the reason why a fault cannot be applied to this controller, or "".
func (l *Lab) impossible(sc *scenario.Scenario, f fault.Fault) string {
	switch {
	case f.Kind == fault.DownDuring && l.needsWebhooks(sc, f.Point.Step):
		return needsWebhooks
	case f.Kind == fault.WebhookDown && l.config.Subject.Webhook.Port == 0:
		return noWebhooks
	}
	return ""
}

// arm returns the run's fault in its initial state, or nil for a run without a fault.
func (r *run) arm() *inject.Injection {
	if r.fault == nil {
		return nil
	}
	c := inject.Config{
		Fault: *r.fault, Canonical: r.lesson.canonical, Change: r.lesson.change, Mask: r.lesson.Reference.Mask,
		Primary: r.lab.config.Subject.Primary, Grace: min(r.lab.config.Subject.Grace(), grace),
		User: r.lab.config.Subject.User(), Log: r.log, Cluster: r.lab.otherClient(), Store: r.lab.store, Webhooks: r.webhooks,
	}
	for i := range r.scenario.Steps {
		c.Steps = append(c.Steps, r.scenario.Steps[i].Name)
	}
	if len(r.scenario.Endpoints) == 0 { // the hash of the world does not include external resources
		c.Explored = r.explored
	}
	return inject.New(c)
}

// explored identifies the current state of the cluster in a step, and reports whether an
// earlier run has recovered from it.
func (r *run) explored(ctx context.Context, step string) (reached string, known bool, err error) {
	if err := r.lab.caughtUp(ctx); err != nil {
		return "", false, err
	}
	reached = r.scenario.Name + "\x00" + step + "\x00" + r.world(step).Hash()
	return reached, r.lab.explored[reached], nil
}

// needsWebhooks reports whether a step of the scenario needs the controller's webhooks.
func (l *Lab) needsWebhooks(sc *scenario.Scenario, step string) bool {
	return slices.ContainsFunc(sc.Steps, func(s scenario.Step) bool {
		return s.Name == step && NeedsWebhooks(&l.config.Subject, &s)
	})
}

// used returns the permissions in the lesson's Unused that the run needed.
func (l *Lab) used(lesson *Lesson, run *evidence.Run) []judge.Unused {
	if len(lesson.Unused) == 0 {
		return nil
	}
	unused := judge.UnusedPermissions(&l.config.Subject, []*evidence.Run{run})
	return slices.DeleteFunc(slices.Clone(lesson.Unused), func(u judge.Unused) bool { return slices.Contains(unused, u) })
}

// Control runs a scenario without a fault, as slowly as the slowest reference run, and
// judges the result. A finding in this run is not caused by a fault.
func (l *Lab) Control(ctx context.Context, lesson *Lesson, seed uint64) (*Verdict, error) {
	l.elections.Trust(lesson.Elections)
	r := &run{
		lab: l, scenario: lesson.Scenario, lesson: lesson, window: lesson.Window, streams: lesson.Streams,
		jitter: newJitter(seed, references-1), idle: idle, out: &evidence.Run{Seed: seed},
	}
	out, err := r.do(ctx)
	if err != nil {
		return nil, err
	}
	v := &Verdict{Run: out}
	v.judge(lesson.Reference, &l.config.Subject)
	return v, nil
}

// judge judges the run. If the controller kept exiting, and nothing else was found, the run proves
// nothing: the run is not clean, but its fault is not shown to be impossible, either.
func (v *Verdict) judge(r *judge.Reference, s *subject.Subject) {
	run := v.Run
	if run.Inconclusive == "" && (run.Fault == nil || run.Applied) {
		v.Findings = judge.Judge(r, run, s)
	}
	if len(v.Findings) == 0 {
		run.Inconclusive = cmp.Or(run.Inconclusive, run.Gone)
	}
}

// canonical returns a name that identifies the object in every run.
func (l *Lesson) canonical(namespace, name, resource string) string {
	return l.Reference.Mask.Name(namespace, name, resource)
}

// change returns the content of a write, without the parts that differ in every run.
func (l *Lesson) change(call *trace.Call) string {
	object, err := call.RequestObject()
	if err != nil || call.Endpoint != "" {
		return ""
	}
	return state.Body(l.Reference.Mask, call.Target, object)
}
