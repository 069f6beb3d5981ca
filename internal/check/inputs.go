package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
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
	// crashes or does not come to rest because of them. For fields without an effect, only the time is limited.
	mostSuspects = 20
	// mostTroubling is the number of inputs for which it is tried whether they concern other resources.
	mostTroubling = 6
	// mostRestarts limits how often the trials of one scenario begin again, such as after a crash, and
	// mostVainStarts how often one does not even reach the first trial.
	mostRestarts, mostVainStarts = 12, 2
)

// trial collects the outcomes of the trials.
type trial struct {
	*check
	until time.Time // the end of the trials
	end   time.Time // the end of the repetitions

	mu     sync.Mutex
	tried  []triedInput
	doubts []string // fields that may have no effect
	stuck  []string // kinds with a resource that stays after its deletion
}

// triedInput is a trial with its outcome, and the scenario with all trials of the object.
type triedInput struct {
	inputs.Tried
	of *scenario.Trials
	at int // its number there
	// marks are the trials in which the field was changed together with others, each with a text of its own, or nil, and
	// number is that of its trial there.
	marks  *scenario.Trials
	number int
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
	marks, bare, alone := c.divided()
	if err := c.enlarge(ctx, len(alone), c.cost()); err != nil {
		return err
	}
	t := &trial{check: c}
	share := longestInputs
	if c.Budget > 0 {
		share = min(c.Budget/inputShare, c.left()*2/3)
	}
	t.until, t.end = time.Now().Add(share*2/3), time.Now().Add(share)
	c.Observer.Phase("trying " + noun.Count(t.total(), "input"))
	err := t.screening(len(marks)).try(ctx, marks, bare, alone)
	if err == nil {
		err = t.confirm(ctx)
	}
	return err
}

// share makes calls on all labs. While the processors are idle, more labs are started: a controller that is slow
// to react leaves them idle, and this may be known only now.
func (t *trial) share(ctx context.Context, calls int, do func(context.Context, *fleet.Worker, int) error) error {
	work := fleet.Work{Calls: calls, Do: func(ctx context.Context, w *fleet.Worker, i int) error {
		began := time.Now()
		err := do(ctx, w, i)
		t.Observer.Done("", time.Since(began))
		return err
	}}
	if t.Workers == 0 {
		work.Most, work.Fewest = t.most, size(calls, t.cost())
	}
	return t.fleet.Share(ctx, work)
}

// most returns the largest number of labs that is worth its memory and starts while so many calls are left to
// begin, and all labs are at work.
func (t *trial) most(left int) int {
	n := fleet.Most(runtime.GOMAXPROCS(0), t.cost(), fleet.FreeMemory(), t.fleet.Len()+left)
	return min(n, t.fleet.Len()+planesWithin(t.perPlane, time.Until(t.end)))
}

func (t *trial) total() (n int) {
	for _, one := range t.Trials {
		if !one.Again && one.Alone() {
			n += len(one.Trials)
		}
	}
	return n
}

// piece is a part of the trials of one scenario, in a scenario of its own. The numbers are those that its trials have in the
// whole.
type piece struct {
	of, trials *scenario.Trials
	numbers    []int
}

// pieces divides the trials with the selected keys so that each piece takes a small part of the time for trials. Otherwise
// a slow controller would leave labs without work, and the most telling trials of a sample, which come first, would wait
// for each other while other labs make less telling ones.
func (t *trial) pieces(alone []*scenario.Trials, selected func(key string) bool) (all []piece) {
	most := perPiece(t.stepTime(), time.Until(t.until))
	for _, of := range alone {
		var numbers []int
		for i := range of.Trials {
			if selected(inputs.Key(of, i)) {
				numbers = append(numbers, i)
			}
		}
		for some := range slices.Chunk(numbers, most) {
			trials := of.Some(func(i int, _ *scenario.Trial) bool { return slices.Contains(some, i) })
			all = append(all, piece{of, trials, some})
		}
	}
	return all
}

// perPiece returns the number of trials that a lab makes in a quarter of the time, given the time for a step, or the
// fewest if that is unknown. With fewer, most of the time would be spent on creating the sample.
func perPiece(step, within time.Duration) int {
	const fewest, steps = 5, 3
	if step <= 0 {
		return fewest
	}
	return max(int(within/4/(steps*step)), fewest)
}

// stepTime returns the longest time for a step, on average, of the scenarios that were learnt, or zero.
func (t *trial) stepTime() (longest time.Duration) {
	for _, l := range t.lessons {
		if l.Scenario != nil && len(l.Scenario.Steps) > 0 {
			longest = max(longest, l.Took/time.Duration(len(l.Scenario.Steps)))
		}
	}
	return longest
}

// all makes the trials of one piece. After a crash, it goes on with the trial after it. Trials that
// could not be made have an unknown outcome.
func (t *trial) all(ctx context.Context, w *fleet.Worker, p piece) error {
	rest, vain := p.trials, 0
	next := func() []int { return p.numbers[len(p.numbers)-len(rest.Trials):] }
	for range mostRestarts {
		left := time.Until(t.until)
		if left <= 0 {
			break
		}
		done, err := w.Try(ctx, rest, t.windowOf(p.of), left, t.Seed)
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
		known := slices.IndexFunc(done, func(d inputs.Tried) bool { return d.Outcome == inputs.Unknown })
		if known < 0 {
			known = len(done)
		}
		t.add(p.of, next(), done[:known])
		if rest = rest.From(known); rest == nil {
			return nil
		}
		if known > 0 {
			continue
		}
		if vain++; vain == mostVainStarts {
			t.notBegun(p.of, done)
			break
		}
	}
	var unknown []inputs.Tried
	for _, one := range rest.Trials {
		unknown = append(unknown, inputs.Tried{Trial: one, Outcome: inputs.Unknown})
	}
	t.add(p.of, next(), unknown)
	return nil
}

// notBegun notes why even the object itself has no result.
func (t *trial) notBegun(of *scenario.Trials, done []inputs.Tried) {
	if len(done) > 0 && done[0].Why != "" {
		t.note(fmt.Sprintf("%s of %s could not be tried: %s", noun.Count(len(done), "input"), of.KindGroup, done[0].Why))
	}
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

// add adds outcomes, which belong to the trials with the given numbers.
func (t *trial) add(of *scenario.Trials, numbers []int, done []inputs.Tried) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, d := range done {
		t.tried = append(t.tried, triedInput{Tried: d, of: of, at: numbers[i]})
	}
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
