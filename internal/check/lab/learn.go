package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/cost"
	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab/election"
	"github.com/koboshi-dev/koboshi/internal/check/missing"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// references is the number of runs without a fault; all but the first have jitter.
const references = 3

// carefully is the factor by which the runs with jitter extend the learned window.
// maxCareful limits the extended window, but never shortens the learned one.
const (
	carefully  = 3
	maxCareful = time.Second
)

// Lesson is the result of running a scenario without a fault. A Lesson is passed from one lab to
// the others as JSON.
type Lesson struct {
	Scenario  *scenario.Scenario `json:"scenario"`
	Reference *judge.Reference   `json:"reference,omitempty"`
	// Shown holds the states that the runs without a fault have shown, with which the recovery from a
	// kill is compared.
	Shown *plan.Shown `json:"shown,omitempty"`
	Plan  plan.Plan   `json:"plan"`
	// Findings are the findings of runs without a fault.
	Findings []judge.Finding `json:"findings,omitempty"`
	// Tried holds the outcomes of trials that were made together; see Kept.
	Tried []inputs.Tried `json:"tried,omitempty"`
	// Unused lists permissions that the controller has but did not need in this
	// scenario.
	Unused []judge.Unused `json:"unused,omitempty"`
	// Window is the time without a change after which the world is considered to be at rest.
	// Streams is the number of watches that the controller has open when it is at rest.
	Window  time.Duration `json:"window"`
	Streams int           `json:"streams"`
	// Tail is the time for which some runs observe a controller after a kill. Tail is longer than
	// the controller's pause between its start and its first write.
	Tail time.Duration `json:"tail"`
	// Patience is the time allowed for a stage of healing.
	Patience time.Duration `json:"patience"`
	// Writes is the number of the controller's effective writes. Took is the duration of
	// one run.
	Writes int           `json:"writes"`
	Took   time.Duration `json:"took"`
	Runs   int           `json:"runs"`
	Cost   Cost          `json:"cost"`
	// Usage counts the requests of the controller.
	Usage cost.Usage `json:"usage,omitzero"`
	// Lease is the duration of the controller's Lease; 0 if it elects no leader.
	Lease time.Duration `json:"lease,omitempty"`
	// Refused reports whether the controller tried to take a Lease, and never succeeded.
	Refused bool `json:"refused,omitempty"`
	// Elections lists the Leases with which the controller elects a leader; see election.Known.
	Elections []string `json:"elections,omitempty"`
	// Said is the last line that the controller printed.
	Said string `json:"said,omitempty"`
	// Dropped lists generated steps that the cluster refused, with the reason.
	Dropped []string `json:"dropped,omitempty"`
	// Matched lists the lines of the scenario's ignore list that matched a field or an
	// object.
	Matched []string `json:"matched,omitempty"`
	// Notes lists remarks about the system on which the lab runs.
	Notes []string `json:"notes,omitempty"`
	// Missing holds a sentence for everything that the controller requested but did not find, with
	// the flag that supplies it.
	Missing []string `json:"missing,omitempty"`
	// Own lists sentences that are removed from Missing of all scenarios, because the controller
	// makes the missing object itself in this scenario.
	Own []string `json:"own,omitempty"`
	// SuiteOutput is the end of the output of the test suite in the last run, if there is one.
	SuiteOutput string `json:"suiteOutput,omitempty"`
	// Workloads reports whether the controller made objects that need upstream's
	// controllers, such as Pods.
	Workloads bool `json:"workloads,omitempty"`
	// Trace is the trace of the last run, if there are findings.
	Trace []trace.Entry `json:"-"`

	// bare makes the lab omit what only runs with a fault need.
	bare bool
}

// A RestlessError reports a controller that never comes to rest, although no loop could be
// identified. Without a final state, there is nothing to compare.
type RestlessError struct {
	Scenario, Step string
	Last           string // the controller's last write
	Why            string // the condition that kept the world from being at rest
}

func (e *RestlessError) Error() string {
	return fmt.Sprintf("scenario %s, step %s: the controller never comes to rest, even without a fault (%s): %s; add the changing fields to the scenario's ignore list, or allow more time with rest.timeout",
		e.Scenario, e.Step, e.Why, e.Last)
}

// Learn runs a scenario without faults until the expected result is known. Generated steps that the
// cluster refuses are left out. If the results differ, the controller may have paused, for example
// while it waited for a server that does not answer. In this case, Learn repeats all runs with the
// longest quiet time.
func (l *Lab) Learn(ctx context.Context, sc *scenario.Scenario, seed uint64, generated bool) (*Lesson, error) {
	return l.learnPatiently(ctx, &Lesson{Scenario: sc}, seed, generated)
}

// LearnPath runs a scenario that gets no faults. Its lesson has findings, but no plan. Most steps of such a
// scenario depend on each other, so only a dispensable one is left out if the cluster refuses it.
func (l *Lab) LearnPath(ctx context.Context, sc *scenario.Scenario, seed uint64) (*Lesson, error) {
	return l.learnPatiently(ctx, &Lesson{Scenario: sc, bare: true}, seed, false)
}

func (l *Lab) learnPatiently(ctx context.Context, blank *Lesson, seed uint64, generated bool) (*Lesson, error) {
	sc := blank.Scenario
	lesson, err := l.learn(ctx, *blank, seed, generated)
	slow := slowly(sc, err)
	if slow == nil {
		return lesson, err
	}
	blank.Scenario = slow
	again, failed := l.learn(ctx, *blank, seed, generated)
	if failed != nil {
		return lesson, err // it is not about the pauses
	}
	again.Runs += lesson.Runs
	again.Notes = append(again.Notes, fmt.Sprintf("scenario %s has a quiet time of %s, because its runs without a fault differed with shorter ones", sc.Name, longestWindow))
	return again, nil
}

// slowly returns a copy of the scenario with the longest quiet time if its runs differed, and
// nil if a longer quiet time would not help or is not allowed.
func slowly(sc *scenario.Scenario, err error) *scenario.Scenario {
	var different *judge.DifferentError
	if sc.Rest.Quiet > 0 || !errors.As(err, &different) {
		return nil
	}
	slow := *sc
	slow.Rest.Quiet = scenario.Duration(longestWindow)
	return &slow
}

// learn runs the scenario of a blank lesson without faults, and derives the lesson from these runs.
func (l *Lab) learn(ctx context.Context, blank Lesson, seed uint64, generated bool) (*Lesson, error) {
	lesson, sc := &blank, blank.Scenario
	lesson.Window = widest(sc)
	var runs, crashed []*evidence.Run
	for len(runs) < references {
		meter := newMeter()
		out, err := missing.Explain(l.referenceRun(lesson, len(runs), len(crashed), seed).do(ctx))
		var refused *StepError
		if errors.As(err, &refused) && (generated || lesson.bare && lesson.Scenario.IsDispensable(refused.Step)) && scenario.Refused(refused.Err) {
			lesson.Scenario = lesson.Scenario.Without(refused.Step)
			lesson.Dropped = append(lesson.Dropped, refused.Error())
			runs, crashed = nil, nil
			lesson.Window = widest(sc)
			if lesson.Scenario == nil || len(lesson.Scenario.Steps) == 0 {
				return nil, refused
			}
			continue
		}
		var gone *GoneError
		if errors.As(err, &gone) && len(out.Steps) > 1 {
			if crashed = append(crashed, out); len(crashed) == enoughCrashes {
				return l.crashLesson(lesson, len(runs), crashed, gone)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, out)
		lesson.Cost = meter.cost()
		if len(runs) == 1 {
			lesson.Window, lesson.Streams = window(out, lesson.Scenario), streamsOf(out)
		}
		if restless(out) {
			break
		}
	}
	lesson.Runs, lesson.Tail = len(runs), tailFor(runs)
	lesson.Patience = max(patienceFor(runs), roundsOf(lesson.Scenario))
	for _, out := range runs {
		// A run that was slow because the machine was busy must not extend the window.
		lesson.Window = min(lesson.Window, window(out, lesson.Scenario))
	}
	if err := l.conclude(lesson, runs, seed); err != nil {
		return lesson, err
	}
	l.addCrashes(lesson, len(runs), crashed)
	if lesson.bare {
		return lesson, nil
	}
	return lesson, l.disturbed(ctx, lesson, runs[len(runs)-1], seed)
}

// widest returns the window of the first run, from which later windows are learned.
func widest(sc *scenario.Scenario) time.Duration {
	return max(firstWindow, time.Duration(sc.Rest.Quiet))
}

// enoughCrashes is the number of runs without a fault in which the controller must keep exiting
// before this counts as the result of the scenario. The first such run may be caused by the
// machine.
const enoughCrashes = 2

// exitsAgainFor is the time for which a controller is restarted in a run that confirms that it keeps
// exiting. The run before it has shown that waiting longer does not help.
const exitsAgainFor = 5 * time.Second

// crashLesson returns the lesson of a scenario in which the controller keeps exiting once
// it has work. The lesson has findings, but no reference and no plan.
func (l *Lab) crashLesson(lesson *Lesson, others int, crashed []*evidence.Run, gone *GoneError) (*Lesson, error) {
	last := crashed[len(crashed)-1]
	lesson.Runs, lesson.Took, lesson.Writes = others, last.Took, effectiveWrites(last)
	lesson.Said = output.Reason(last.Logs)
	l.addCrashes(lesson, others, crashed)
	if !slices.ContainsFunc(lesson.Findings, isCrash) {
		return nil, gone
	}
	return lesson, nil
}

// addCrashes adds the findings of learning runs in which the controller kept exiting. The other
// learning runs of the scenario did not show these findings.
func (l *Lab) addCrashes(lesson *Lesson, others int, crashed []*evidence.Run) {
	lesson.Runs += len(crashed)
	if len(crashed) == 0 {
		return
	}
	last := crashed[len(crashed)-1]
	for _, f := range judge.Faultless(nil, crashed, &l.config.Subject) {
		if isCrash(f) && slices.ContainsFunc(lesson.Findings, isCrash) {
			continue
		}
		if f.Step == "" {
			f.Step = last.Steps[len(last.Steps)-1].Name
		}
		f.Reproduced, f.Attempts = len(crashed), others+len(crashed)
		lesson.Findings = append(lesson.Findings, f)
	}
	if len(lesson.Findings) > 0 && lesson.Trace == nil {
		lesson.Trace = last.Entries
	}
}

func isCrash(f judge.Finding) bool { return f.Verdict == judge.Crashed }

// conclude derives the reference for judging runs with a fault, and plans the faults that
// are worth a run.
func (l *Lab) conclude(lesson *Lesson, runs []*evidence.Run, seed uint64) (err error) {
	last := runs[len(runs)-1]
	lesson.Took, lesson.Writes, lesson.Lease = last.Took, effectiveWrites(last), election.Longest(last)
	lesson.Elections, lesson.Usage = l.elections.Names(), cost.Of(runs)
	lesson.Said, lesson.Refused = output.LastLine(last.Logs), election.Refused(last)
	for _, note := range []string{l.withoutView(), l.absent} {
		if note != "" {
			lesson.Notes = append(lesson.Notes, note)
		}
	}
	lesson.Missing, lesson.Workloads = missing.Find(runs...), makesWorkloads(last)
	for _, run := range runs {
		lesson.Own = append(lesson.Own, missing.Own(run)...)
	}
	lesson.Reference, err = judge.NewReference(lesson.Scenario, runs)
	if restless(last) || err == nil {
		lesson.Findings = judge.Faultless(lesson.Reference, runs, &l.config.Subject)
	}
	lesson.Reference.Doubt(lesson.Findings)
	lesson.learnSuite(last)
	lesson.Notes = append(lesson.Notes, judge.Refusals(lesson.Reference, runs, &l.config.Subject)...)
	lesson.Notes = append(lesson.Notes, judge.Kept(lesson.Reference, runs, &l.config.Subject)...)
	lesson.Notes = append(lesson.Notes, judge.Outlived(lesson.Reference, runs, &l.config.Subject)...)
	lesson.Unused = judge.UnusedPermissions(&l.config.Subject, runs)
	if len(lesson.Findings) > 0 {
		lesson.Trace = last.Entries
	}
	if restless(last) {
		if len(lesson.Findings) == 0 {
			at := last.Steps[len(last.Steps)-1]
			return &RestlessError{Scenario: lesson.Scenario.Name, Step: at.Name, Last: lastWrite(last), Why: at.Unrest}
		}
		return nil // there is nothing to compare with
	}
	if err != nil {
		return l.incomparable(lesson, runs, err)
	}
	if lesson.bare {
		return nil
	}
	in := l.planning(lesson)
	in.Reference, in.All, in.Seed = last, runs, seed
	lesson.Plan = plan.Make(in)
	if len(lesson.Scenario.Endpoints) == 0 && !lesson.Scenario.HasSuite() { // the store is not the complete state
		lesson.Shown = plan.ShownBy(in, lesson.Reference.Mask)
	}
	return nil
}

// planning returns what a plan for a scenario depends on, apart from the runs.
func (l *Lab) planning(lesson *Lesson) plan.Input {
	return plan.Input{
		Scenario: lesson.Scenario, Canonical: lesson.canonical, Change: lesson.change,
		Subject: &l.config.Subject, OldServer: l.config.OldServer,
	}
}

// incomparable draws conclusions from fault-free runs that cannot be compared. If the controller
// crashed in these runs, or a deleted namespace stays in some of them, this is the result of the
// scenario; otherwise, err is the result.
func (l *Lab) incomparable(lesson *Lesson, runs []*evidence.Run, err error) error {
	found := judge.Faultless(nil, runs, &l.config.Subject)
	if stuck := judge.Stuck(lesson.Scenario, runs, &l.config.Subject); len(stuck) > 0 {
		found = stuck
	} else if !slices.ContainsFunc(found, isCrash) {
		return &SetupError{err}
	}
	last := runs[len(runs)-1]
	lesson.Reference, lesson.Findings, lesson.Trace = nil, found, last.Entries
	return nil
}

// referenceRun prepares the run without a fault that follows n complete ones and the given number of runs
// in which the controller kept exiting.
func (l *Lab) referenceRun(lesson *Lesson, n, crashed int, seed uint64) *run {
	r := &run{
		lab: l, scenario: lesson.Scenario, window: lesson.Window, streams: max(lesson.Streams, 1),
		idle: idle, out: &evidence.Run{Seed: seed + uint64(n)},
	}
	if crashed > 0 {
		r.exitsFor = exitsAgainFor
	}
	if n > 0 {
		// If a run with jitter ended a step too early, it would lack the later changes, and
		// the check would treat these changes as optional.
		r.window = min(max(carefully*r.window, briefPause), max(r.window, maxCareful))
		r.jitter = newJitter(seed, n)
		r.polls = lesson.Streams == 0
	}
	return r
}

// window returns twice the longest pause between two changes in a step. window ignores pauses for
// which the function rest waits anyway.
func window(out *evidence.Run, sc *scenario.Scenario) time.Duration {
	if quiet := time.Duration(sc.Rest.Quiet); quiet > 0 {
		return quiet
	}
	longest := time.Duration(0)
	for _, step := range out.Steps {
		if quietTime(sc, step.Name) > 0 {
			continue // the step has a window of its own
		}
		if step.Suite != nil {
			pause, _ := judge.Pauses(out, step)
			longest = max(longest, pause, shortestSuite/2)
			continue
		}
		last, waits := step.BeganAt, map[state.Ref]bool{}
		for _, change := range out.History.Changes {
			if change.Revision <= step.Began || change.Revision > step.Rested || !counts(&change) {
				continue
			}
			if step.Name != Started && len(waits) == 0 && !isEnd(&change) {
				longest = max(longest, change.At-last)
			}
			last = change.At
			if delete(waits, change.Ref); rest.IsUnfinished(change.Ref, change.After) {
				waits[change.Ref] = true
			}
		}
	}
	if streamsOf(out) == 0 {
		// A polling controller pauses between two rounds, and the function rest waits for
		// these pauses anyway.
		longest = min(longest, briefPause)
	}
	return min(max(2*longest, shortestWindow), longestWindow)
}

// roundsOf returns the time within which a controller that works at regular intervals has worked at
// least once after a fault, even if its first attempt failed.
func roundsOf(sc *scenario.Scenario) time.Duration {
	const most = 2 * maxPatience
	round := time.Duration(sc.Rest.Round)
	if round <= 0 {
		return 0
	}
	return min(2*round+minSpare, most)
}

// patienceFor returns the time for a stage of healing. Even a slow controller can succeed
// in this time after as many failures as a fault can cause.
func patienceFor(runs []*evidence.Run) time.Duration {
	longest := time.Duration(0)
	for _, out := range runs {
		for _, step := range out.Steps[min(1, len(out.Steps)):] { // the first entry is the start of the process
			if step.Suite != nil {
				_, work := judge.Pauses(out, step)
				longest = max(longest, work)
				continue
			}
			for _, change := range out.History.Changes {
				if change.Revision > step.Began && change.Revision <= step.Rested && counts(&change) {
					longest = max(longest, change.At-step.BeganAt)
				}
			}
		}
	}
	return min(max(patience, tries*longest), maxPatience)
}

// minTail and maxTail limit the tail that is learned.
const (
	minTail = time.Second
	maxTail = 4 * time.Second
)

// tailFor returns twice the longest pause between the first request of a process and its
// first write.
func tailFor(runs []*evidence.Run) time.Duration {
	longest := time.Duration(0)
	for _, out := range runs {
		for _, pause := range waking(out) {
			longest = max(longest, pause)
		}
	}
	return min(max(2*longest, minTail), maxTail)
}

// waking returns the time between the first request and the first write of each process. waking
// omits a process that does not write before the step in which it was started comes to rest.
func waking(out *evidence.Run) (pauses []time.Duration) {
	asked := map[string]time.Duration{}
	for _, e := range out.Entries {
		first, known := asked[e.Instance]
		switch {
		case e.Step != nil && e.Step.What == "settled":
			clear(asked)
		case e.Process != nil && e.Process.What == "started":
			asked[e.Instance] = -1
		case e.Call == nil || !known:
		case first < 0 && !request.IsWork(e.Call):
			asked[e.Instance] = e.At - e.Call.Took
		case request.IsWork(e.Call):
			if first >= 0 {
				pauses = append(pauses, e.At-first)
			}
			delete(asked, e.Instance)
		}
	}
	return pauses
}

// counts reports whether a change is used to learn the window. Changes of derived objects
// are not used, because upstream's controllers write these objects after all other
// changes.
func counts(c *state.Change) bool { return delaysRest(c) && !request.IsDerived(c.Ref.GroupKind) }

// streamsOf returns the number of watches that are open when the controller first comes to
// rest.
func streamsOf(out *evidence.Run) (n int) {
	for _, e := range out.Entries {
		switch {
		case e.Step != nil && e.Step.Name == Started && e.Step.What == "settled":
			return n
		case e.Call != nil && e.Call.Verb == "watch" && e.Call.Code == 200:
			n++
		case e.Watch != nil && e.Watch.Type == "CLOSED":
			n--
		}
	}
	return n
}

func restless(out *evidence.Run) bool {
	return len(out.Steps) > 0 && out.Steps[len(out.Steps)-1].Restless
}

// effectiveWrites counts the controller's writes that changed something.
func effectiveWrites(out *evidence.Run) (n int) {
	revisions := map[string]bool{}
	for _, c := range out.History.Changes {
		revisions[formatRevision(c.Revision)] = true
	}
	for _, e := range out.Entries {
		if e.Call != nil && request.IsWork(e.Call) && e.Call.Code < 300 &&
			(e.Call.Verb == "delete" || revisions[e.Call.ResourceVersion]) {
			n++
		}
	}
	return n
}

// lastWrite describes the last write in a run that never came to rest.
func lastWrite(out *evidence.Run) string {
	for i := len(out.Entries) - 1; i >= 0; i-- {
		if c := out.Entries[i].Call; c != nil && request.IsWork(c) {
			return fmt.Sprintf("it keeps sending %s %s %s/%s", request.Method(c.Verb), c.Target.Resource, c.Target.Namespace, c.Target.Name)
		}
	}
	if !slices.ContainsFunc(out.Entries, func(e trace.Entry) bool { return e.Call != nil }) {
		return "it made no request; check whether it reads KUBECONFIG"
	}
	return "another client keeps writing"
}
