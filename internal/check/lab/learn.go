package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// references is how many runs without a fault there are; all but the first have
// jitter.
const references = 3

// carefully is how many windows long nothing may be written in them, mostCareful how
// long it is at most if one window is not longer.
const (
	carefully   = 3
	mostCareful = time.Second
)

// Lesson is what is known of a scenario after its runs without a fault. It goes
// from one lab to the others as JSON.
type Lesson struct {
	Scenario  *scenario.Scenario `json:"scenario"`
	Reference *judge.Reference   `json:"reference,omitempty"`
	Plan      plan.Plan          `json:"plan"`
	// Findings are what is wrong without any fault.
	Findings []judge.Finding `json:"findings,omitempty"`
	// Unused are permissions that the controller has and no run of this scenario
	// needed.
	Unused []string `json:"unused,omitempty"`
	// Window is how long nothing may be written for the world to be at rest, and
	// Streams how many watches a controller at rest has at least.
	Window  time.Duration `json:"window"`
	Streams int           `json:"streams"`
	// Patience is how long a stage of healing may take.
	Patience time.Duration `json:"patience"`
	// Writes is how many effective writes the controller did, Took how long one
	// run takes, without the time that the world is watched at rest.
	Writes int           `json:"writes"`
	Took   time.Duration `json:"took"`
	Runs   int           `json:"runs"`
	Cost   Cost          `json:"cost"`
	// Lease is how long a process that was killed goes on holding a Lease; 0 if the
	// controller elects no leader.
	Lease time.Duration `json:"lease,omitempty"`
	// Said is the last line that the controller printed.
	Said string `json:"said,omitempty"`
	// Dropped are generated steps that the cluster refuses, with why.
	Dropped []string `json:"dropped,omitempty"`
	// Trace is that of the first run with a finding.
	Trace []trace.Entry `json:"-"`
}

// A RestlessError is a controller that never comes to rest, and not by a loop that
// could be named: nothing can be compared.
type RestlessError struct {
	Scenario, Step string
	Last           string // what it does
}

func (e *RestlessError) Error() string {
	return fmt.Sprintf("scenario %s, step %s: it never comes to rest without any fault: %s; name what changes in the scenario's ignore, or give it more time with rest.timeout",
		e.Scenario, e.Step, e.Last)
}

// Learn runs a scenario without a fault until it is known what has to come of it.
// Steps that were generated and that the cluster refuses are left out.
func (l *Lab) Learn(ctx context.Context, sc *scenario.Scenario, seed uint64, generated bool) (*Lesson, error) {
	lesson := &Lesson{Scenario: sc, Window: firstWindow}
	var runs []*evidence.Run
	for len(runs) < references {
		meter := newMeter()
		out, err := l.reference(ctx, lesson, len(runs), seed)
		var refused *StepError
		if errors.As(err, &refused) && generated && scenario.Refused(refused.Err) {
			lesson.Scenario = lesson.Scenario.Without(refused.Step)
			lesson.Dropped = append(lesson.Dropped, refused.Error())
			runs = nil
			lesson.Window = firstWindow
			if len(lesson.Scenario.Steps) == 0 {
				return nil, refused
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
	lesson.Runs, lesson.Patience = len(runs), patienceFor(runs)
	for _, out := range runs {
		// What one run had to wait for the machine is no pause of the controller's.
		lesson.Window = min(lesson.Window, window(out, lesson.Scenario))
	}
	return lesson, l.conclude(lesson, runs, seed)
}

// conclude makes of the runs what faults are judged by, and which are worth a run.
func (l *Lab) conclude(lesson *Lesson, runs []*evidence.Run, seed uint64) (err error) {
	last := runs[len(runs)-1]
	lesson.Took, lesson.Writes, lesson.Lease = last.Took, effectiveWrites(last), longestLease(last)
	lesson.Said = output.LastLine(last.Logs)
	lesson.Reference, err = judge.NewReference(lesson.Scenario, runs)
	if restless(last) || err == nil {
		lesson.Findings = judge.Faultless(lesson.Reference, runs, &l.config.Subject)
	}
	_, lesson.Unused = judge.Permissions(&l.config.Subject, runs)
	if len(lesson.Findings) > 0 {
		lesson.Trace = last.Entries
	}
	if restless(last) {
		if len(lesson.Findings) == 0 {
			return &RestlessError{Scenario: lesson.Scenario.Name, Step: last.Steps[len(last.Steps)-1].Name, Last: lastWrite(last)}
		}
		return nil // there is nothing to compare with
	}
	if err != nil {
		return &SetupError{err}
	}
	lesson.Plan = plan.Make(plan.Input{
		Scenario: lesson.Scenario, Reference: last, All: runs, Canonical: lesson.canonical, Change: lesson.change,
		Subject: &l.config.Subject, OldServer: l.config.OldServer, Seed: seed,
	})
	return nil
}

// reference is one run without a fault.
func (l *Lab) reference(ctx context.Context, lesson *Lesson, n int, seed uint64) (*evidence.Run, error) {
	r := &run{
		lab: l, scenario: lesson.Scenario, window: lesson.Window, streams: max(lesson.Streams, 1),
		idle: idle, out: &evidence.Run{Seed: seed + uint64(n)},
	}
	if n > 0 {
		// A moment that is taken for rest too early would teach that what comes later
		// may be missing.
		r.window = min(max(carefully*r.window, firstWindow/2), max(r.window, mostCareful))
		r.jitter = newJitter(seed, n)
		r.polls = lesson.Streams == 0
	}
	return r.do(ctx)
}

// window learns how long a pause within an activity may be: twice the longest
// that was seen, but for those that rest waits for anyway.
func window(out *evidence.Run, sc *scenario.Scenario) time.Duration {
	if quiet := time.Duration(sc.Rest.Quiet); quiet > 0 {
		return quiet
	}
	longest := time.Duration(0)
	for _, step := range out.Steps {
		last, waits := step.BeganAt, map[state.Ref]bool{}
		for _, change := range out.History.Changes {
			if change.Revision <= step.Began || change.Revision > step.Rested || !counts(change.Ref) || follows(change.Ref) {
				continue
			}
			if step.Name != Started && len(waits) == 0 {
				longest = max(longest, change.At-last)
			}
			last = change.At
			if delete(waits, change.Ref); unfinished(change.Ref, change.After) {
				waits[change.Ref] = true
			}
		}
	}
	if streamsOf(out) == 0 {
		// Its pauses are those between two rounds of asking, which rest waits for.
		longest = min(longest, firstWindow/2)
	}
	return min(max(2*longest, shortestWindow), longestWindow)
}

// patienceFor is long enough for a slow controller to try as often as the longest
// fault has it fail, and once more.
func patienceFor(runs []*evidence.Run) time.Duration {
	longest := time.Duration(0)
	for _, out := range runs {
		for _, step := range out.Steps[min(1, len(out.Steps)):] { // the first is the start of a process
			for _, change := range out.History.Changes {
				if change.Revision > step.Began && change.Revision <= step.Rested && counts(change.Ref) && !follows(change.Ref) {
					longest = max(longest, change.At-step.BeganAt)
				}
			}
		}
	}
	return min(max(patience, tries*longest), mostPatience)
}

// follows says that upstream's own controllers write the object, at their leisure,
// after others have come to rest.
func follows(ref state.Ref) bool { return ref.Kind == "Endpoints" || ref.Kind == "EndpointSlice" }

// streamsOf is how many watches there were at the first rest.
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

func effectiveWrites(out *evidence.Run) (n int) {
	revisions := map[string]bool{}
	for _, c := range out.History.Changes {
		revisions[formatRevision(c.Revision)] = true
	}
	for _, e := range out.Entries {
		if e.Call != nil && e.Call.Endpoint == "" && writes(e.Call.Verb) && counted(e.Call.Target) && e.Call.Code < 300 &&
			(e.Call.Verb == "delete" || revisions[e.Call.ResourceVersion]) {
			n++
		}
	}
	return n
}

func lastWrite(out *evidence.Run) string {
	for i := len(out.Entries) - 1; i >= 0; i-- {
		if c := out.Entries[i].Call; c != nil && writes(c.Verb) && counted(c.Target) {
			return fmt.Sprintf("%s %s %s/%s again and again", c.Verb, c.Target.Resource, c.Target.Namespace, c.Target.Name)
		}
	}
	if !slices.ContainsFunc(out.Entries, func(e trace.Entry) bool { return e.Call != nil }) {
		return "the controller made no request; see whether it reads KUBECONFIG"
	}
	return "somebody writes again and again"
}
