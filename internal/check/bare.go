package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

const (
	// mostCulprits limits the number of changes that are looked for in a group, all of which crash the controller.
	mostCulprits = 3
	// mostSuccessive is the number of changes up to which it takes less time to make one after the other in one run
	// than to halve them, because each half needs a run of its own, in which the sample is created first.
	mostSuccessive = 8
	// slowStep is the average time for a step from which a controller seems to pause, and may crash only later.
	slowStep = 3 * time.Second
)

// hunt leaves much of a sample empty or out at once, and finds the changes with which the controller crashes.
func (s *screening) hunt(ctx context.Context, w *fleet.Worker, bare *scenario.Trials) error {
	h := &hunt{trial: s.trial, worker: w, of: bare, until: s.until}
	if l := s.lessons[bare.Title+"-life"]; l != nil {
		h.makesWorkloads = l.Workloads
	}
	if s.isSlow() {
		h.quiet = s.quiet
	}
	found, err := h.culprits(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.hurried && len(found) == 0 && bare.Trials[0].Creates() { // each change of an existing object is tried alone as well
		s.late = append(s.late, bare)
	}
	for _, n := range found {
		crash := inputs.Tried{Trial: bare.Trials[n], Outcome: inputs.Crashed}
		if crash.Creates() {
			s.add(bare, []int{n}, []inputs.Tried{crash}) // there is no such trial alone
		} else {
			s.shown[inputs.Key(bare, n)] = triedInput{Tried: crash, of: bare, at: n}
		}
	}
	return err
}

// hunt looks for the trials of a group with which the controller crashes.
type hunt struct {
	*trial
	worker *fleet.Worker
	of     *scenario.Trials
	until  time.Time
	quiet  time.Duration // for which each step must last without a write
	// hurried reports whether there was no time to try some of the groups.
	hurried bool
	// makesWorkloads reports whether the controller makes workloads from the sample.
	makesWorkloads bool
}

// culprits returns the numbers of trials with which the controller crashes.
func (h *hunt) culprits(ctx context.Context) (found []int, err error) {
	for len(found) < mostCulprits {
		var group []int
		for i := range h.of.Trials {
			if !slices.Contains(found, i) {
				group = append(group, i)
			}
		}
		one, err := h.culprit(ctx, group)
		if err != nil || one < 0 {
			return found, err
		}
		found = append(found, one)
	}
	return found, nil
}

// culprit returns the number of a trial with which the controller crashes, or a negative number. It halves a group that
// may hide a crash.
func (h *hunt) culprit(ctx context.Context, group []int) (int, error) {
	if len(group) == 0 {
		return -1, nil
	}
	crashes, hides, err := h.try(ctx, group)
	switch half := len(group) / 2; {
	case err != nil:
		return -1, err
	case crashes:
		h.until = h.trial.until // nothing is graver than a crash that has been seen
		return h.narrow(ctx, group)
	case !hides || half == 0:
		return -1, nil
	default:
		if n, err := h.culprit(ctx, group[:half]); err != nil || n >= 0 {
			return n, err
		}
		return h.culprit(ctx, group[half:])
	}
}

// narrow returns the number of a trial of a group that crashes the controller, or a negative number. It halves a large
// group. If the first half does not crash the controller, it supposes that the second does.
func (h *hunt) narrow(ctx context.Context, group []int) (int, error) {
	few := group
	for len(few) > mostSuccessive {
		half := len(few) / 2
		crashes, _, err := h.try(ctx, few[:half])
		if err != nil {
			return -1, err
		}
		if crashes {
			few = few[:half]
		} else {
			few = few[half:]
		}
	}
	n, err := h.first(ctx, few)
	if err == nil && n < 0 {
		h.note(h.unattributed(group))
	}
	return n, err
}

// first makes the changes of a group one after the other, in one run, and returns the number of the trial with which
// the controller crashes, or a negative number.
func (h *hunt) first(ctx context.Context, group []int) (int, error) {
	left := time.Until(h.until)
	if left <= 0 {
		return -1, nil
	}
	done, err := h.together(ctx, h.worker, h.of.Successive(group).Waiting(h.quiet), left)
	n := slices.IndexFunc(done, func(d inputs.Tried) bool { return d.Outcome == inputs.Crashed })
	if err != nil || n < 0 {
		return -1, err
	}
	return group[n], nil
}

// unattributed describes a crash that was not led back to one of the objects.
func (h *hunt) unattributed(group []int) string {
	var changes []string
	for _, i := range group {
		changes = append(changes, h.of.Trials[i].Given())
	}
	advice := ""
	if time.Now().After(h.until) {
		advice = "; increase --budget"
	}
	return fmt.Sprintf("%s: the controller panicked or exited after several changes at once, but Koboshi did not find out which of them causes this: %s%s",
		h.of.KindGroup, strings.Join(changes, ", "), advice)
}

// try reports whether the controller panics or exits with the selected trials, and whether they may hide that, because
// the controller makes no workload from the new object, unlike from the sample: it probably refuses one of the changes, and
// does not get to the others. Trials that could not be made show nothing.
func (h *hunt) try(ctx context.Context, selected []int) (crashes, hides bool, err error) {
	left := time.Until(h.until)
	if left <= 0 {
		h.hurried = true
		return false, false, nil
	}
	done, err := h.together(ctx, h.worker, h.of.Joint(selected).Waiting(h.quiet), left)
	if err != nil || len(done) == 0 {
		return false, false, err
	}
	crashes = slices.ContainsFunc(done, func(d inputs.Tried) bool { return d.Outcome == inputs.Crashed })
	h.hurried = h.hurried || time.Now().After(h.until) // the run may have been cut short
	return crashes, h.makesWorkloads && done[0].Creates() && !done[0].MakesWorkload(), nil
}
