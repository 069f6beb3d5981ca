package lab

import (
	"cmp"
	"context"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
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
	// Used lists the permissions that the run needed, although the lesson did not.
	Used []judge.Unused
}

// needsWebhooks explains why a step cannot be performed while the controller is down.
const needsWebhooks = "the API server would have to call the controller's webhooks for this step, and refuses the change while they are down"

// Knock runs a scenario with one fault and judges the result. With tail, a controller that
// was killed is observed for longer after it has recovered.
func (l *Lab) Knock(ctx context.Context, lesson *Lesson, f fault.Fault, seed uint64, tail bool) (*Verdict, error) {
	if f.Kind == fault.DownDuring && l.needsWebhooks(lesson.Scenario, f.Point.Step) {
		return &Verdict{Run: &evidence.Run{Scenario: lesson.Scenario.Name, Fault: &f, NotApplied: needsWebhooks}}, nil
	}
	r := &run{
		lab: l, scenario: lesson.Scenario, lesson: lesson, fault: &f, window: lesson.Window, streams: lesson.Streams,
		idle: idle, tail: tail, out: &evidence.Run{Seed: seed, Fault: &f},
	}
	r.knock = &knock{run: r, fault: f}
	l.elections.trust(lesson.Elections)
	if f.Point.Verb != "" {
		r.knock.matcher = fault.NewMatcher(f, lesson.canonical, lesson.change)
	}
	out, err := r.do(ctx)
	if err != nil {
		return nil, err
	}
	if why := r.knock.whyNotApplied(); why != "" && out.NotApplied == "" && out.Inconclusive == "" && out.Gone == "" {
		out.Applied, out.NotApplied = false, why
	}
	v := &Verdict{Run: out, Pruned: r.knock.pruned.Load(), Used: l.used(lesson, out)}
	if v.Pruned {
		return v, nil
	}
	v.judge(lesson.Reference, &l.config.Subject)
	if r.knock.state != "" && len(v.Findings) == 0 && out.Applied && out.Inconclusive == "" {
		l.explored[r.knock.state] = true
	}
	return v, nil
}

// needsWebhooks reports whether a step of the scenario needs the controller's webhooks.
func (l *Lab) needsWebhooks(sc *scenario.Scenario, step string) bool {
	return slices.ContainsFunc(sc.Steps, func(s scenario.Step) bool {
		return s.Name == step && NeedsWebhooks(&l.config.Subject, &s)
	})
}

// used returns those of the lesson's unused permissions that the run needed.
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
	l.elections.trust(lesson.Elections)
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

// judge judges the run. If the controller kept exiting, and nothing else was found, the run
// proves nothing: it is neither clean, nor is its fault impossible.
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
