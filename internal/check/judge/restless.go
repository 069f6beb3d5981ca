package judge

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// restlessRate is a rate in writes per second to the same object. A controller that reaches
// this rate is treated as one that never stops writing.
const restlessRate = 5.0

// restless finds loops in a step that never came to rest: the controller writes the same few objects
// again and again, and the writes lead nowhere.
func restless(in *input) []Finding {
	for _, s := range in.steps {
		if !s.Restless || s.held {
			continue
		}
		if l, ok := restlessLoop(in.ref.Mask, in.labels, in.run, s.Step); ok {
			return []Finding{in.loop(s.Name, l, "and does not come to rest")}
		}
	}
	return nil
}

// restlessLoop examines only the second half of the step, because activity that ends at all
// should have ended in the first half.
func restlessLoop(m *state.Mask, labels *state.Labels, run *evidence.Run, s evidence.Step) (loop, bool) {
	from, to := s.BeganAt+(s.RestedAt-s.BeganAt)/2, s.RestedAt
	if to <= from {
		return loop{}, false
	}
	var late []trace.Entry
	for _, e := range run.Entries {
		if e.At >= from && e.At <= to {
			late = append(late, e)
		}
	}
	if missesPods(late) {
		return loop{}, false
	}
	for _, l := range grouped(m, late) {
		l.within = to - from
		if len(l.writes) < fewestAfterFault {
			break
		}
		if l.rate() >= restlessRate {
			return l, true
		}
		if l.rate() >= heartbeat {
			if states := written(m, labels, run, l); recur(states) || accumulate(states) {
				return l, true
			}
		}
	}
	return loop{}, false
}

// written returns the states of the objects after the writes of a loop, as JSON. Writes that changed
// nothing have no state.
func written(m *state.Mask, labels *state.Labels, run *evidence.Run, l loop) (states []string) {
	revisions := map[int64]bool{}
	for revision, e := range authors(run) {
		if slices.ContainsFunc(l.writes, func(w trace.Entry) bool { return w.Seq == e.Seq }) {
			revisions[revision] = true
		}
	}
	for _, c := range run.History.Changes {
		if !revisions[c.Revision] || c.After == nil {
			continue
		}
		content, err := json.Marshal(m.Content(labels, c.Ref, c.After, true))
		if err != nil {
			return nil
		}
		states = append(states, string(content))
	}
	return states
}

// recur reports whether writes lead to no new states: the states differ only in masked fields or in
// order, or are repeated.
func recur(states []string) bool {
	distinct := map[string]bool{}
	for _, s := range states {
		distinct[s] = true
	}
	return len(states) > 0 && len(distinct) <= max(2, len(states)/3)
}

// accumulate reports whether each write adds the same text to the object again, such as one value to a
// list. On a busy machine, such a loop may be slower than restlessRate.
func accumulate(states []string) bool {
	if len(states) < fewestAfterFault {
		return false
	}
	added := inserted(states[0], states[1])
	for i := 2; i < len(states); i++ {
		if inserted(states[i-1], states[i]) != added {
			return false
		}
	}
	return added != ""
}

// inserted returns the text that was inserted into before, or "" if something else was changed.
func inserted(before, after string) string {
	i := 0
	for i < min(len(before), len(after)) && before[i] == after[i] {
		i++
	}
	if rest := before[i:]; len(after) > len(before) && strings.HasSuffix(after[i:], rest) {
		return after[i : len(after)-len(rest)]
	}
	return ""
}
