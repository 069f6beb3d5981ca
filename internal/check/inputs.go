package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/opinions"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

const (
	// inputShare is the part of the budget in which fields are changed: one half, because most
	// reported bugs of operators need no fault. Without a budget, it is longestInputs. The first two
	// thirds are for the trials, and the rest is for repeating those that show something.
	inputShare    = 2
	longestInputs = 8 * time.Minute
	// mostSuspects is the number of inputs that are tried again, to confirm that the controller
	// crashes or does not come to rest because of them. mostInert is the same number for fields
	// without an effect.
	mostSuspects, mostInert = 12, 20
	// mostVain is the number of effects that were not undone after which no other one is tried again,
	// if none of them showed again: the controller was only slow.
	mostVain = 3
	// mostRestarts limits how often the trials of one scenario begin again, such as after a crash.
	mostRestarts = 12
)

// trial collects the outcomes of the trials.
type trial struct {
	*check
	until time.Time // the end of the trials
	end   time.Time // the end of the repetitions

	mu    sync.Mutex
	tried []triedInput
	vain  int // effects that were not undone, but were when it was tried again
}

// triedInput is a trial with its outcome, and the scenario with all trials of the object.
type triedInput struct {
	inputs.Tried
	of *scenario.Trials
	at int // its number there
}

// tryInputs changes each field of the samples alone, without faults: does the controller react, does
// it undo its reaction, and does it survive? What may be a bug is confirmed with a scenario of its own,
// and a field without an effect is tried again, also with other samples.
func (c *check) tryInputs(ctx context.Context) error {
	if len(c.Trials) == 0 || c.tried || c.hasEnough() {
		return nil
	}
	began := time.Now()
	c.tried = true
	defer func() { c.triedFor = time.Since(began) }()
	first := slices.DeleteFunc(slices.Clone(c.Trials), func(one *scenario.Trials) bool { return one.Again })
	if err := c.enlarge(ctx, len(first)); err != nil {
		return err
	}
	t := &trial{check: c}
	share := longestInputs
	if c.Budget > 0 {
		share = min(c.Budget/inputShare, c.left()*2/3)
	}
	t.until, t.end = time.Now().Add(share*2/3), time.Now().Add(share)
	c.Observer.Phase("trying " + noun.Count(t.total(), "input"))
	c.Observer.Total(len(first))
	err := c.fleet.Each(ctx, len(first), func(ctx context.Context, w *fleet.Worker, i int) error {
		began := time.Now()
		err := t.all(ctx, w, first[i])
		c.Observer.Done("", time.Since(began))
		return err
	})
	if err == nil {
		err = t.confirm(ctx)
	}
	return err
}

func (t *trial) total() (n int) {
	for _, one := range t.Trials {
		if !one.Again {
			n += len(one.Trials)
		}
	}
	return n
}

// all makes the trials of one scenario. After a crash, it goes on with the trial after it. Trials that
// could not be made have an unknown outcome.
func (t *trial) all(ctx context.Context, w *fleet.Worker, of *scenario.Trials) error {
	rest := of
	for range mostRestarts {
		left := time.Until(t.until)
		if left <= 0 {
			break
		}
		done, err := w.Try(ctx, rest, t.windowOf(of), left, t.Seed)
		var failed *fleet.LabError
		var setup *fleet.SetupError
		switch {
		case errors.As(err, &failed) || errors.As(err, &setup):
			t.note(fmt.Sprintf("%s could not be tried: %v", noun.Count(len(rest.Trials), "input"), err))
			done = nil
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		next := slices.IndexFunc(done, func(d inputs.Tried) bool { return d.Outcome == inputs.Unknown })
		if next < 0 {
			next = len(done)
		}
		t.add(of, len(of.Trials)-len(rest.Trials), done[:next])
		if rest = rest.From(next); rest == nil {
			return nil
		}
		if next == 0 {
			break // even the object itself has no result
		}
	}
	var unknown []inputs.Tried
	for _, one := range rest.Trials {
		unknown = append(unknown, inputs.Tried{Trial: one, Outcome: inputs.Unknown})
	}
	t.add(of, len(of.Trials)-len(rest.Trials), unknown)
	return nil
}

// windowOf returns the learnt window of a scenario with the same object. If it has not been learnt yet,
// it returns the longest one of all scenarios.
func (t *trial) windowOf(of *scenario.Trials) (window time.Duration) {
	if l := t.lessons[of.Title+"-life"]; l != nil {
		return l.Window
	}
	for _, l := range t.lessons {
		window = max(window, l.Window)
	}
	return window
}

// add adds outcomes, the first of which belongs to the trial with the given number.
func (t *trial) add(of *scenario.Trials, first int, done []inputs.Tried) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, d := range done {
		t.tried = append(t.tried, triedInput{d, of, first + i})
	}
}

// confirm repeats what the trials show, and reports what they show again. Suspects and fields without an
// effect take turns, so that neither of them takes all of the time.
func (t *trial) confirm(ctx context.Context) error {
	suspects, idle := t.suspects(), t.inert()
	t.count(len(suspects), len(idle))
	t.list()
	suspects, idle = suspects[:min(len(suspects), mostSuspects)], idle[:min(len(idle), mostInert)]
	if len(suspects)+len(idle) == 0 {
		return nil
	}
	queue := scenario.ByTurns([][]triedInput{suspects, idle})
	t.Observer.Phase("confirming " + noun.Count(len(queue), "input"))
	t.Observer.Total(len(queue))
	return t.fleet.Each(ctx, len(queue), func(ctx context.Context, w *fleet.Worker, i int) (err error) {
		began, d := time.Now(), queue[i]
		suspicious := d.Outcome.Suspicious()
		switch {
		case t.hasEnough():
		case suspicious && d.Outcome == inputs.Kept && t.isVain():
			t.note(d.seen() + ", and it was not tried again, because the controller undid others later")
		case began.After(t.end) && suspicious && !d.panics():
			t.note(d.seen() + ", and there was no time to try it again; increase --budget")
		case began.After(t.end) && !suspicious: // what has begun may take longer
			t.note("not all fields without an effect could be tried again in the time for inputs, so some are not reported; increase --budget")
		case suspicious:
			err = t.suspect(ctx, w, d)
		default:
			err = t.idleField(ctx, w, d)
		}
		t.Observer.Done("", time.Since(began))
		return err
	})
}

// isVain reports whether it is of no use to try another effect again that was not undone.
func (t *trial) isVain() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.vain >= mostVain
}

// repeated counts the repetitions of effects that were not undone.
func (t *trial) repeated(d triedInput, shown bool) {
	if d.Outcome != inputs.Kept {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.vain++; shown {
		t.vain = -mostSuspects // what was seen is real
	}
}

// gravest lists the suspicious outcomes in the order in which they are confirmed.
var gravest = []inputs.Outcome{inputs.Crashed, inputs.Restless, inputs.Kept, inputs.Denied, inputs.Rejected}

// suspects returns the trials that may show a bug, the gravest first. Of those with the same outcome
// for the same reason, it returns only the first, because they probably show the same bug.
func (t *trial) suspects() (found []triedInput) {
	seen := map[string]bool{}
	for _, outcome := range gravest {
		for _, d := range t.tried {
			reason := cmp.Or(reasonOf(d.Why), d.Field+" "+d.Verb)
			if d.Creates() { // whatever the name is, the same part of the controller cannot deal with it
				reason = d.Field
			}
			key := string(outcome) + " " + d.of.KindGroup + " " + reason
			if d.Outcome == outcome && !seen[key] {
				seen[key] = true
				found = append(found, d)
			}
		}
	}
	return found
}

// quoted matches the values in a reason. The same mistake is reported with different values.
var quoted = regexp.MustCompile(`"[^"]*"`)

func reasonOf(why string) string { return quoted.ReplaceAllString(why, "") }

// suspect runs the scenario of an input without a fault, several times, and reports what it shows like
// the findings of all other scenarios. The scenario gets no faults.
func (t *trial) suspect(ctx context.Context, w *fleet.Worker, d triedInput) error {
	sc := d.of.Only(d.at)
	l, err := t.repeat(ctx, w, d, sc)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil: // the controller never comes to rest, but no loop was found
		t.note(fmt.Sprintf("%s of %s: %v", d.Given(), d.of.KindGroup, err))
		return nil
	}
	t.tally.learnt(l.Runs)
	if t.isTooSmallFor(l) {
		return nil // what was found may only be due to the profile
	}
	t.check.mu.Lock()
	t.result.Scenarios[sc.Name] = l.Scenario
	t.check.mu.Unlock()
	shown := false
	for _, f := range l.Findings {
		if len(l.Dropped) == 0 && slices.Contains(shownByInputs, f.Verdict) {
			f.Input, shown = d.Given(), true
			t.faultless(f, l)
		}
	}
	t.repeated(d, shown)
	if !shown {
		t.note(d.seen() + ", but not when it was tried again")
	}
	return nil
}

// repeat runs the scenario of an input.
func (t *trial) repeat(ctx context.Context, w *fleet.Worker, d triedInput, sc *scenario.Scenario) (*fleet.Lesson, error) {
	if d.Outcome == inputs.Crashed {
		return w.Crash(ctx, sc, t.windowOf(d.of), t.Seed)
	}
	return w.Learn(ctx, sc, t.Seed, true)
}

// panics reports whether the controller panicked. To confirm that takes a few seconds, unlike an exit,
// after which the controller is started again until it is clear that it does not recover.
func (d *triedInput) panics() bool { return d.Outcome == inputs.Crashed && d.Why == "" }

// seen describes what a suspicious trial has shown.
func (d *triedInput) seen() string {
	return fmt.Sprintf("%s of %s: %s", d.Given(), d.of.KindGroup, seemed[d.Outcome])
}

// seemed describes what a suspicious trial has shown.
var seemed = map[inputs.Outcome]string{
	inputs.Crashed: "the controller panicked or exited", inputs.Restless: "the controller did not come to rest",
	inputs.Kept: "the change back did not undo everything", inputs.Denied: "the API server denied a request",
	inputs.Rejected: "the API server kept rejecting a write",
}

// shownByInputs lists the verdicts that an input may have. The scenario of an input also shows what
// all other scenarios show.
var shownByInputs = []judge.Verdict{judge.Crashed, judge.HotLoop, judge.PathDependent, judge.RBACMissing, judge.APIRemoved, judge.RefusedLate}

// idleField changes a field without an effect once more, in a new object, because an earlier change may
// have left the controller in a state in which it reacts to nothing. A second change, whose effect is
// known, proves that the controller has seen the first one. The field is also changed in the other
// samples of the kind, because it may matter only together with others.
func (t *trial) idleField(ctx context.Context, w *fleet.Worker, d triedInput) error {
	known := t.known(d)
	if known == nil {
		return nil
	}
	done, err := w.Try(ctx, d.of.Proof(d.at, known.at), t.windowOf(d.of), time.Until(t.end), t.Seed)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil || len(done) != 2 || done[0].Outcome != d.Outcome || !done[1].Shows(&known.Tried) {
		return nil // nothing is certain
	}
	for _, of := range t.again(d) {
		done, err := w.Try(ctx, of, t.windowOf(of), time.Until(t.end), t.Seed)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || slices.ContainsFunc(done, func(o inputs.Tried) bool { return o.Outcome.HasEffect() }) {
			return nil
		}
	}
	f := judge.Inert(d.of.Scenario.Name, d.Step, d.of.Object, d.of.KindGroup, d.Field, d.Outcome == inputs.Once)
	f.Silence = opinions.Silence(f)
	t.check.mu.Lock()
	defer t.check.mu.Unlock()
	t.result.Report.Add(f)
	return nil
}

// known returns a trial of the same scenario whose effect is known, and that does not affect the given
// one; nil means that there is none.
func (t *trial) known(d triedInput) *triedInput {
	for i := range t.tried {
		o := &t.tried[i]
		if o.of == d.of && o.Outcome == inputs.Effect && len(o.Signs) > 0 && !o.Creates() && d.of.Proof(d.at, o.at) != nil {
			return o
		}
	}
	return nil
}

// again returns the same change of a field in other samples of the kind.
func (t *trial) again(d triedInput) (all []*scenario.Trials) {
	for _, of := range t.Trials {
		if !of.Again || of.KindGroup != d.of.KindGroup {
			continue
		}
		same := of.Some(func(_ int, one *scenario.Trial) bool { return one.Field == d.Field && one.Verb == d.Verb })
		if same != nil {
			all = append(all, same)
		}
	}
	return all
}

// inert returns one trial for each field whose changes had no effect. Only a kind that the controller
// handles counts. With shards, the other trials of a field may be in another shard.
func (t *trial) inert() (found []triedInput) {
	if t.Shards > 1 {
		return nil
	}
	kinds := map[string][]triedInput{}
	for _, d := range t.tried {
		kinds[d.of.KindGroup] = append(kinds[d.of.KindGroup], d)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		var all []inputs.Tried
		for _, d := range kinds[kind] {
			all = append(all, d.Tried)
		}
		if !inputs.Handled(all) {
			t.note("no change of a field of " + kind + " had an effect, so there are no remarks about its fields; check whether the sample is complete enough for the controller to work")
			continue
		}
		if inputs.Deaf(all) {
			t.note("most fields of " + kind + " had no effect, so there are no remarks about them; the controller probably waits for something that the cluster does not have")
			continue
		}
		for _, i := range inputs.InertFields(all) {
			if !t.Opinions.Inputs.Allows(kind, all[i].Field) {
				found = append(found, kinds[kind][i])
			}
		}
	}
	return found
}

// list adds all inputs to the report.
func (t *trial) list() {
	t.check.mu.Lock()
	defer t.check.mu.Unlock()
	for _, d := range t.tried {
		t.result.Report.Inputs = append(t.result.Report.Inputs, report.Input{Kind: d.of.KindGroup, Given: scrub.Known.Text(d.Given()), Outcome: string(d.Outcome)})
	}
	slices.SortStableFunc(t.result.Report.Inputs, func(a, b report.Input) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Given, b.Given))
	})
}

// count notes how many changes had which outcome.
func (t *trial) count(suspects, idle int) {
	count := map[inputs.Outcome]int{}
	for _, d := range t.tried {
		count[d.Outcome]++
	}
	t.note(fmt.Sprintf("%s, each undone again: %d had an effect, %d had none (%s), %d were refused, %d may show a bug, %d were not tried",
		noun.Count(t.total(), "input"), count[inputs.Effect]+count[inputs.Once]+count[inputs.Kept], count[inputs.Inert]+count[inputs.Told], noun.Count(idle, "field"),
		count[inputs.Refused], suspects, t.total()-len(t.tried)+count[inputs.Unknown]))
}
