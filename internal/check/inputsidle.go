package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

// mostJoint is the number of fields without an effect that are changed in one step, to confirm that none has an effect.
const mostJoint = 8

// idleGroups divides fields without an effect into groups that are confirmed together, because a sample may have
// many such fields, and each run must first create it.
func (t *trial) idleGroups(idle []triedInput) (groups []confirmation) {
	for len(idle) > 0 {
		group, known, rest := idle[:1:1], t.known(idle[0]), []triedInput(nil)
		for _, d := range idle[1:] {
			if known != nil && len(group) < mostJoint && fits(d, group, known) {
				group = append(group, d)
			} else {
				rest = append(rest, d)
			}
		}
		groups = append(groups, confirmation{triedInput: group[0], run: func(ctx context.Context, w *fleet.Worker, _ triedInput) error {
			return t.idleFields(ctx, w, group, known)
		}, late: func(*triedInput) string {
			return "not all fields without an effect could be tried again in the time for inputs, so some are not reported; increase --budget"
		}})
		idle = rest
	}
	return groups
}

// fits reports whether a field can be confirmed together with a group.
func fits(d triedInput, group []triedInput, known *triedInput) bool {
	return d.of == group[0].of && d.Outcome == group[0].Outcome && d.of.JointProof(append(numbers(group), d.at), known.at) != nil
}

// numbers returns the numbers of trials in their scenario.
func numbers(group []triedInput) (all []int) {
	for _, d := range group {
		all = append(all, d.at)
	}
	return all
}

// idleFields confirms a group. If it shows anything else than expected, it is halved, and a small one is confirmed field
// by field.
func (t *trial) idleFields(ctx context.Context, w *fleet.Worker, group []triedInput, known *triedInput) error {
	together := false
	if len(group) > 1 {
		proof := group[0].of.JointProof(numbers(group), known.at)
		done, err := w.Try(ctx, t.provenLast(proof), t.windowOf(proof), t.forIdle(), t.Seed)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		together = err == nil && areIdle(done, group[0].Outcome, &known.Tried)
	}
	if !together && time.Now().After(t.end) {
		for _, d := range group {
			t.unsure(d)
		}
		return nil
	}
	if half := len(group) / 2; !together && half > 1 {
		if err := t.idleFields(ctx, w, group[:half], known); err != nil {
			return err
		}
		return t.idleFields(ctx, w, group[half:], known)
	}
	for _, d := range group {
		confirm := t.idleField
		if together {
			confirm = t.idleElsewhere
		}
		if err := confirm(ctx, w, d); err != nil {
			return err
		}
	}
	return nil
}

// provenLast returns the same trials, with more time for the last one if the controller is slow. Once it shows its effect,
// the controller has seen the changes before it, because they were made to the same object.
func (t *trial) provenLast(trials *scenario.Trials) *scenario.Trials {
	if !t.isSlow() {
		return trials
	}
	last := &trials.Trials[len(trials.Trials)-1]
	return trials.PatientIn(last.Step, last.Then)
}

// forIdle returns the time for confirming a group of fields without an effect that has begun in time. A slow controller
// needs some rounds for it.
func (t *trial) forIdle() time.Duration {
	left := time.Until(t.end)
	if t.isSlow() {
		left = max(left, slowIdle)
	}
	return left
}

// slowIdle is the time for some steps of a controller whose rounds take half a minute, and for creating the sample.
const slowIdle = 3 * time.Minute

// areIdle reports whether all trials except the last one have the outcome, and the last one shows the known effect.
func areIdle(done []inputs.Tried, outcome inputs.Outcome, known *inputs.Tried) bool {
	last := len(done) - 1
	return last > 0 && done[last].Shows(known) &&
		!slices.ContainsFunc(done[:last], func(d inputs.Tried) bool { return d.Outcome != outcome })
}

// idleField changes a field without an effect once more, in a new object, because an earlier change may
// have left the controller in a state in which it reacts to nothing. A second change, whose effect is
// known, proves that the controller has seen the first one. The field is also changed in the other
// samples of the kind, because it may matter only together with others.
func (t *trial) idleField(ctx context.Context, w *fleet.Worker, d triedInput) error {
	known := t.known(d)
	if known == nil {
		t.unsure(d)
		return nil
	}
	idle, err := t.confirmIdle(ctx, w, d, d.of.Proof(d.at, known.at), &known.Tried)
	if err != nil || !idle {
		return err
	}
	return t.idleElsewhere(ctx, w, d)
}

// idleElsewhere reports a field that has no effect with its sample, unless it has one with another sample.
func (t *trial) idleElsewhere(ctx context.Context, w *fleet.Worker, d triedInput) error {
	for _, of := range t.again(d) {
		if idle, err := t.confirmIdle(ctx, w, d, of, nil); err != nil || !idle {
			return err
		}
	}
	t.remark(judge.Inert(d.about(), d.Outcome == inputs.Once))
	return nil
}

// attempt is the result of one repetition of a change that had no effect.
type attempt string

const (
	effect attempt = "an effect"
	quiet  attempt = "no effect"
	vain   attempt = "nothing"
)

// conclusion is the result of all attempts for one field.
type conclusion string

const (
	undecided   conclusion = "undecided"
	isIdle      conclusion = "no effect"
	isUsed      conclusion = "an effect"
	isUncertain conclusion = "uncertain"
)

// mostAttempts limits the attempts for one field, and mostVainAttempts those that show nothing.
const mostAttempts, mostVainAttempts = 4, 2

// conclude decides whether a field has an effect. One effect may be other work of the controller that fell
// into the same time, so it must show twice; after a single one, two attempts must show none.
func conclude(seen []attempt) conclusion {
	count := map[attempt]int{}
	for _, a := range seen {
		count[a]++
	}
	switch {
	case count[effect] > 1:
		return isUsed
	case count[quiet] > count[effect]:
		return isIdle
	case count[vain] == mostVainAttempts || len(seen) == mostAttempts:
		return isUncertain
	}
	return undecided
}

// confirmIdle repeats a change until it is clear whether it has no effect.
func (t *trial) confirmIdle(ctx context.Context, w *fleet.Worker, d triedInput, trials *scenario.Trials, known *inputs.Tried) (bool, error) {
	var seen []attempt
	for conclude(seen) == undecided && time.Now().Before(t.end) {
		done, err := w.Try(ctx, t.provenLast(trials), t.windowOf(trials), t.forIdle(), t.Seed+uint64(len(seen)))
		if err != nil && ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if err != nil {
			done = nil
		}
		seen = append(seen, evidenceOf(done, d.Outcome, known))
	}
	switch conclude(seen) {
	case isIdle:
		return true, nil
	case isUsed:
		return false, nil
	}
	t.unsure(d)
	return false, nil
}

// evidenceOf judges an attempt. The outcome is that of the first trial of the field. If known is nil, all
// changes are changes of the field. Otherwise the second of two changes has the known effect; if this effect
// does not show, the controller may not have seen the first change either.
func evidenceOf(done []inputs.Tried, outcome inputs.Outcome, known *inputs.Tried) attempt {
	field := done
	if known != nil {
		field = done[:min(len(done), 1)]
	}
	unknown := len(field) == 0
	for _, d := range field {
		switch {
		case d.Outcome == inputs.Unknown:
			unknown = true
		case d.Outcome.HasEffect():
			return effect
		}
	}
	switch {
	case unknown:
		return vain
	case known != nil && (len(done) != 2 || done[0].Outcome != outcome || !done[1].Shows(known)):
		return vain
	}
	return quiet
}

// unsure remembers a field of which it is not certain that it has no effect.
func (t *trial) unsure(d triedInput) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doubts = append(t.doubts, d.Field+" of "+d.of.KindGroup)
}

// doubted notes the fields of which it is not certain that they have no effect.
func (t *trial) doubted() {
	if len(t.doubts) == 0 {
		return
	}
	slices.Sort(t.doubts)
	t.note(fmt.Sprintf("%s seemed to have no effect, but this could not be confirmed: %s",
		noun.Count(len(t.doubts), "field"), strings.Join(t.doubts, ", ")))
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
