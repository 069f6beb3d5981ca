package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// These are the fields of a spec with which an update destroys something: Pods end, or a Service
// loses its endpoints.
const (
	replicas = "replicas"
	selector = "selector"
	template = "template"
)

// upset is an update that destroyed something and was revised in the same step.
type upset struct {
	object, field string // the canonical name of the object, and the field of its spec
	from, to      string // the values before and after the destructive update, in JSON
}

func (u upset) place() string { return u.object + " spec." + u.field }

// destructive finds updates that never happen without the fault, and destroy something although the
// final state is right: the controller scales an object down and up again, changes a selector or a
// template and changes it back, or causes a second rollout for one change. There is no finding if
// another client changed the controller's objects, because the controller may depend on them.
func destructive(in *input) []Finding {
	if in.meddled() {
		return nil
	}
	for _, w := range in.windows() {
		if w.several {
			continue // what one step changes, the next step may rightly change back
		}
		for _, u := range upsets(in.ref.Mask, in.labels, in.run, in.authors, w.after, w.upTo) {
			if w.upsets[u.place()] == 0 && !in.oldView(w, u) {
				return []Finding{in.upset(w, u)}
			}
		}
		if f := in.rolledOut(w); f != nil {
			return []Finding{*f}
		}
	}
	return nil
}

// upsets returns the updates in a range of revisions that the controller made and revised.
func upsets(m *state.Mask, labels *state.Labels, run *evidence.Run, by map[int64]*trace.Entry, after, upTo int64) (found []upset) {
	type place struct {
		ref   state.Ref
		field string
	}
	past := map[place][]string{} // the values since the last change by another client
	for _, c := range run.History.Between(after, upTo) {
		for _, field := range []string{replicas, selector, template} {
			was, is, changed := values(m, labels, c, field)
			at := place{c.Ref, field}
			switch {
			case c.Op != state.Updated || changed && by[c.Revision] == nil:
				delete(past, at)
				continue
			case !changed:
				continue
			}
			if len(past[at]) == 0 {
				past[at] = []string{was}
			}
			if from, to, ok := revised(field, past[at], is); ok {
				found, past[at] = append(found, upset{labels.Of(c.Ref), field, from, to}), nil
			}
			past[at] = append(past[at], is)
		}
	}
	return found
}

// values returns the values of a field of the spec before and after a change, as they are compared,
// and whether they differ.
func values(m *state.Mask, labels *state.Labels, c state.Change, field string) (was, is string, changed bool) {
	if c.Op != state.Updated || c.Before.Metadata("uid") != c.After.Metadata("uid") ||
		reflect.DeepEqual(inSpec(c.Before, field), inSpec(c.After, field)) || !m.Counts(c, labels.Of(c.Ref)) {
		return "", "", false
	}
	was, is = compared(m, labels, c.Ref, c.Before, field), compared(m, labels, c.Ref, c.After, field)
	return was, is, was != is
}

func inSpec(object map[string]any, field string) any {
	spec, _ := object["spec"].(map[string]any)
	return spec[field]
}

// compared returns a field of the spec in JSON, without the parts that are not compared.
func compared(m *state.Mask, labels *state.Labels, ref state.Ref, object state.Object, field string) string {
	content, _ := m.Content(labels, ref, object, false).(map[string]any)
	data, err := json.Marshal(inSpec(content, field))
	if err != nil {
		return "" // a content holds only JSON
	}
	return string(data)
}

// revised reports whether a new value of a field revises a destructive update: fewer replicas than
// before and after, or any value that is replaced by an earlier one. It returns the values before and
// after that update.
func revised(field string, past []string, is string) (from, to string, ok bool) {
	if field != replicas {
		back := slices.Index(past, is)
		if back < 0 || back+1 == len(past) {
			return "", "", false
		}
		return is, past[back+1], true
	}
	lowest := 0
	for i := range past {
		if replicaCount(past[i]) < replicaCount(past[lowest]) {
			lowest = i
		}
	}
	if lowest == 0 || replicaCount(is) <= replicaCount(past[lowest]) {
		return "", "", false
	}
	return past[lowest-1], past[lowest], true
}

// replicaCount returns the number in a JSON text. One replica is the default.
func replicaCount(text string) float64 {
	n := 1.0
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return 1
	}
	return n
}

// oldView reports whether the fault shows the controller an old state, and the controller wrote a
// value that the field had before the window. A controller may act on what it sees. Of the two values
// of an update that was revised, the one that did not stay is the one to explain.
func (in *input) oldView(w window, u upset) bool {
	if !in.seesOldStates() {
		return false
	}
	old, last := map[string]bool{}, ""
	for _, c := range in.run.History.Changes {
		if c.Revision > w.upTo || c.After == nil || in.labels.Of(c.Ref) != u.object {
			continue
		}
		last = compared(in.ref.Mask, in.labels, c.Ref, c.After, u.field)
		if c.Revision <= w.after {
			old[last] = true
		}
	}
	if u.to == last {
		return old[u.from]
	}
	return old[u.to]
}

// seesOldStates reports whether the fault lets the controller see states that have passed.
func (in *input) seesOldStates() bool {
	f := in.run.Fault
	return f != nil && (f.Until != "" || slices.Contains([]fault.Kind{fault.DelayWatch, fault.StaleRestart, fault.LoseStates, fault.Outage}, f.Kind))
}

// upset makes the finding for an update that was revised.
func (in *input) upset(w window, u upset) Finding {
	what := fmt.Sprintf("the %s of %s is changed and changed back", u.field, u.object)
	if u.field == replicas {
		what = fmt.Sprintf("%s is scaled down from %s to %s and up again", u.object, u.from, u.to)
	}
	return in.finding(DestructiveBlip, w.name, what+", which never happens without the fault",
		[]state.Difference{{Object: u.object, Path: "spec." + u.field, Want: u.from, Got: u.to}})
}

// workloads lists the kinds of which upstream's controllers replace all Pods when the template
// changes.
var workloads = []string{"Deployment.apps", "StatefulSet.apps", "DaemonSet.apps"}

// rollouts counts the changes of templates that the controller made in a range of revisions, by the
// canonical names of the workloads. It omits workloads that were created in this range, because
// nothing depends on their first Pods.
func rollouts(m *state.Mask, labels *state.Labels, run *evidence.Run, by map[int64]*trace.Entry, after, upTo int64) map[string]int {
	count, created := map[string]int{}, map[state.Ref]bool{}
	for _, c := range run.History.Between(after, upTo) {
		if c.Op == state.Created {
			created[c.Ref] = true
		}
		if !slices.Contains(workloads, c.Ref.String()) || created[c.Ref] || by[c.Revision] == nil {
			continue
		}
		if _, _, changed := values(m, labels, c, template); changed {
			count[labels.Of(c.Ref)]++
		}
	}
	return count
}

// rolledOut finds a workload that is rolled out once without the fault, and more often with it. A
// controller that sees old states may need a second rollout.
func (in *input) rolledOut(w window) *Finding {
	if in.seesOldStates() || !in.changesOne(w.name) {
		return nil
	}
	count := rollouts(in.ref.Mask, in.labels, in.run, in.authors, w.after, w.upTo)
	for _, key := range slices.Sorted(maps.Keys(count)) {
		if w.rollouts[key] != 1 || count[key] < 2 || strings.Contains(key, "*") {
			continue
		}
		f := in.finding(DestructiveBlip, w.name, fmt.Sprintf("%s is rolled out %d times instead of once", key, count[key]),
			[]state.Difference{{Object: key, Path: "(rollouts)", Want: "1", Got: fmt.Sprint(count[key])}})
		return &f
	}
	return nil
}

// changesOne reports whether a step changes only one object. The controller may rightly roll out
// between two changes of a step, although it does not without the fault.
func (in *input) changesOne(name string) bool {
	for _, s := range in.ref.Scenario.Steps {
		if s.Name == name {
			return len(s.Run) == 0 && len(s.Apply) <= 1
		}
	}
	return false
}

// learnUpdates records how often the controller updates objects destructively in a step of the runs
// without a fault.
func (s *StepReference) learnUpdates(m *state.Mask, labels *state.Labels, run *evidence.Run, i int) {
	by := authors(run)
	count := map[string]int{}
	for _, u := range upsets(m, labels, run, by, run.Steps[i].Began, end(run, i)) {
		count[u.place()]++
	}
	most(s.Upsets, count)
	most(s.Rollouts, rollouts(m, labels, run, by, run.Steps[i].Began, end(run, i)))
}
