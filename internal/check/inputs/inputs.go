// Package inputs decides what a controller did with each input: it is a pure function of the record
// of one run.
//
//	schema, sample ──scenario.GenerateTrials──▶ Trials ──lab──▶ evidence.Run ──Judge──▶ Tried
package inputs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Outcome is the reaction of a controller to an input.
type Outcome string

// These are the outcomes.
const (
	Effect   Outcome = "effect"   // it changed something, or asked for something that the input names
	Inert    Outcome = "inert"    // neither the input nor its return to the old value had an effect
	Refused  Outcome = "refused"  // the API server, or a webhook, refused the input
	Crashed  Outcome = "crashed"  // it panicked, or kept exiting
	Restless Outcome = "restless" // it did not come to rest
	Unknown  Outcome = "unknown"  // the run ended before the input
)

// Tried is a trial with its outcome. Why explains a refusal or a crash.
type Tried struct {
	scenario.Trial
	Outcome Outcome `json:"outcome"`
	Why     string  `json:"why,omitempty"`
}

// Judge returns the outcomes of the trials in a run. Everything after the first crash, and after
// the first step that did not come to rest, is unknown.
func Judge(t *scenario.Trials, run *evidence.Run) []Tried {
	steps := map[string]*evidence.Step{}
	for i := range run.Steps {
		steps[run.Steps[i].Name] = &run.Steps[i]
	}
	noise := map[string]bool{}
	for _, name := range t.Controls {
		if step := steps[name]; step != nil {
			for _, sign := range signs(t, run, step) {
				noise[sign] = true
			}
		}
	}
	tried := make([]Tried, len(t.Trials))
	for i, trial := range t.Trials {
		tried[i] = Tried{Trial: trial, Outcome: Unknown}
		change, undo := steps[trial.Step], steps[trial.Undo]
		switch {
		case change == nil:
		case change.Crashed || undo != nil && undo.Crashed:
			tried[i].Outcome, tried[i].Why = Crashed, run.Gone
		case change.Restless || undo != nil && undo.Restless:
			tried[i].Outcome = Restless
		case change.Refused != "":
			tried[i].Outcome, tried[i].Why = Refused, change.Refused
		case undo != nil && undo.Refused != "":
			tried[i].Outcome, tried[i].Why = Refused, "it could not be undone: "+undo.Refused
		case undo == nil:
		case !changes(t, run, change):
			tried[i].Outcome, tried[i].Why = Refused, "the API server stored no change"
		case affects(t, run, change, noise) || affects(t, run, undo, noise) || asks(&trial, run, change):
			tried[i].Outcome = Effect
		default:
			tried[i].Outcome = Inert
		}
	}
	return tried
}

// affects reports whether a step has a sign that is no noise.
func affects(t *scenario.Trials, run *evidence.Run, step *evidence.Step, noise map[string]bool) bool {
	return slices.ContainsFunc(signs(t, run, step), func(sign string) bool { return !noise[sign] })
}

// signs describes what happened in a step in addition to the change that it made itself: each
// changed field, each created or deleted object, and each kind of request to an external endpoint.
// Times, and the generation that a controller has seen, are left out.
func signs(t *scenario.Trials, run *evidence.Run, step *evidence.Step) (all []string) {
	own := true // the first change of the object is the step itself
	for _, c := range run.History.Between(step.Began, step.Rested) {
		switch {
		case own && c.Op == state.Updated && isObject(t, c.Ref):
			own = false // even if it only touches the object
		case !c.Effective() || request.IsLeaseKind(c.Ref.GroupKind):
		case c.Op == state.Updated:
			for _, path := range changed(map[string]any(c.Before), map[string]any(c.After)) {
				all = append(all, c.Ref.String()+" "+path)
			}
		default:
			all = append(all, string(c.Op)+" "+c.Ref.String())
		}
	}
	for _, c := range calls(run, step) {
		if c.Endpoint != "" {
			all = append(all, c.Endpoint+" "+c.Verb)
		}
	}
	return all
}

// changes reports whether a step changed the object. A webhook may have restored the old value.
func changes(t *scenario.Trials, run *evidence.Run, step *evidence.Step) bool {
	return slices.ContainsFunc(run.History.Between(step.Began, step.Rested), func(c state.Change) bool {
		return isObject(t, c.Ref) && c.Effective()
	})
}

func isObject(t *scenario.Trials, ref state.Ref) bool {
	return ref.String() == t.KindGroup && ref.Name == t.Object.Name && ref.Namespace == t.Object.Namespace
}

// changed returns the paths of the values that differ, without generations and times.
func changed(before, after any) (paths []string) {
	switch was := before.(type) {
	case map[string]any:
		is, _ := after.(map[string]any)
		for _, key := range keys(was, is) {
			if slices.Contains([]string{"observedGeneration", "generation", "resourceVersion", "managedFields"}, key) {
				continue
			}
			for _, path := range changed(was[key], is[key]) {
				paths = append(paths, strings.TrimSuffix(key+"."+path, "."))
			}
		}
		return paths
	case []any:
		is, _ := after.([]any)
		if len(was) != len(is) {
			return []string{"[]"}
		}
		for i := range was {
			for _, path := range changed(was[i], is[i]) {
				paths = append(paths, strings.TrimSuffix(fmt.Sprintf("[%d].%s", i, path), "."))
			}
		}
		return paths
	}
	if reflect.DeepEqual(before, after) || isTime(before) && isTime(after) {
		return nil
	}
	return []string{""}
}

func keys(a, b map[string]any) []string {
	all := map[string]bool{}
	for key := range a {
		all[key] = true
	}
	for key := range b {
		all[key] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func isTime(value any) bool {
	text, isText := value.(string)
	if !isText {
		return false
	}
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// calls returns the requests of the controller in a step.
func calls(run *evidence.Run, step *evidence.Step) (all []*trace.Call) {
	end := step.RestedAt
	if end == 0 {
		end = run.Took
	}
	for i := range run.Entries {
		if e := &run.Entries[i]; e.Call != nil && e.Instance != "" && e.At >= step.BeganAt && e.At <= end {
			all = append(all, e.Call)
		}
	}
	return all
}

// asks reports whether the controller sent a request for an object that the new value names.
func asks(trial *scenario.Trial, run *evidence.Run, step *evidence.Step) bool {
	return slices.ContainsFunc(calls(run, step), func(c *trace.Call) bool {
		return len(c.Target.Name) > 1 && strings.Contains(string(trial.Value), `"`+c.Target.Name+`"`)
	})
}

// Handled reports whether the controller reacted to any of the inputs. If it did not, no single
// field can be blamed.
func Handled(tried []Tried) bool {
	return slices.ContainsFunc(tried, func(t Tried) bool { return t.Outcome == Effect })
}

// InertFields returns the indexes of trials, one for each field that has no effect. All trials are of
// one kind. That a field can be removed, or emptied, without an effect is no proof, because this may
// be its default; so another value must have been tried. Nor is a field without an effect if a field in
// it has one, or may have one.
func InertFields(tried []Tried) (found []int) {
	seen := map[string]bool{}
	for i, t := range tried {
		if seen[t.Field] || t.Outcome != Inert || !slices.Contains([]string{"change", "add", "add-to", "append"}, t.Verb) {
			continue
		}
		seen[t.Field] = true
		if !slices.ContainsFunc(tried, func(o Tried) bool { return o.Outcome != Inert && o.Outcome != Refused && within(o.Field, t.Field) }) {
			found = append(found, i)
		}
	}
	return found
}

// within reports whether a field is another field, or lies in it.
func within(field, other string) bool {
	rest, found := strings.CutPrefix(field, other)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
