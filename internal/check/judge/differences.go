package judge

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// Differences returns the differences between the reference after a step and a world. It omits
// differences that prove nothing against the controller: counters and histories that a legal
// disturbance advances, conditions of a passing state, older entries of histories, and differences
// in places where the reference itself is wrong.
func (r *Reference) Differences(step string, got state.World) []state.Difference {
	want, got := r.newestOnly(step, r.World(step), got)
	return slices.DeleteFunc(want.Diff(got), func(d state.Difference) bool {
		return advanced(d) || r.advances(d) || r.doubts(step, d) || r.passed(step, d)
	})
}

// An Advance is a field of a status in which a controller counts or lists past events.
type Advance struct {
	Object string `json:"object"`
	Path   string `json:"path"`
}

// Disturb learns from a run without a fault, but with restarts and touches at rest, which fields of
// statuses such a disturbance advances. Disturb learns nothing from a step after which anything
// else differs, because the controller may have a bug. Disturb also learns which random values
// outside of Secrets the disturbance does not change.
func (r *Reference) Disturb(run *evidence.Run) {
	r.Steady = r.steady(run)
	for _, s := range run.Steps {
		if s.Restless || r.find(s.Name) == nil {
			continue
		}
		differences := r.World(s.Name).Diff(r.Mask.CanonicalAfter(s.Name, run.History.At(s.Rested)))
		if slices.ContainsFunc(differences, func(d state.Difference) bool { return !grows(d) }) {
			continue
		}
		for _, d := range differences {
			if at := (Advance{d.Object, d.Path}); !slices.Contains(r.Advances, at) {
				r.Advances = append(r.Advances, at)
			}
		}
	}
}

// Grown describes the fields that may advance.
func (r *Reference) Grown() (fields []string) {
	for _, a := range r.Advances {
		fields = append(fields, a.Object+" "+a.Path+" (may grow, as after a restart without a fault)")
	}
	return fields
}

// advances reports whether a difference is in a field that a disturbance advances, and in the
// same direction.
func (r *Reference) advances(d state.Difference) bool {
	return grows(d) && slices.Contains(r.Advances, Advance{d.Object, d.Path})
}

// grows reports whether a number in a status is higher than in the reference, or a list
// longer.
func grows(d state.Difference) bool {
	if !isStatus(d.Path) {
		return false
	}
	var want, got any
	if d.Want != "" && json.Unmarshal([]byte(d.Want), &want) != nil || json.Unmarshal([]byte(d.Got), &got) != nil {
		return strings.HasPrefix(d.Got, "[") && (d.Want == "" || strings.HasPrefix(d.Want, "[")) // cut off
	}
	before, isNumber := want.(float64)
	after, number := got.(float64)
	if number && (isNumber || want == nil) {
		return after > before
	}
	old, wasList := want.([]any)
	list, isList := got.([]any)
	return isList && (wasList || want == nil) && len(list) > len(old)
}

// A Doubt is a place where the reference itself is wrong, according to a finding of the runs
// without a fault.
type Doubt struct {
	Step   string `json:"step"`
	Object string `json:"object"`
	// Path is empty if the object should not exist.
	Path string `json:"path,omitempty"`
}

// Doubt records the places in which the reference is wrong, according to findings of the runs
// without a fault. A difference in such a place proves nothing against a run with a fault: its
// state may be the better one.
func (r *Reference) Doubt(found []Finding) {
	if r == nil {
		return
	}
	for _, f := range found {
		switch f.Verdict {
		case Leak, PathDependent, TakenOver, Collision:
			for _, d := range f.Differences {
				r.Doubts = append(r.Doubts, Doubt{f.Step, d.Object, d.Path})
			}
		}
	}
}

// doubts reports whether a difference is in a place where the reference is wrong. An object that
// leaks may be missing after any step. A field is in doubt from the step of the finding on.
func (r *Reference) doubts(step string, d state.Difference) bool {
	at := r.index(step)
	return slices.ContainsFunc(r.Doubts, func(doubt Doubt) bool {
		switch {
		case doubt.Object != d.Object:
			return false
		case doubt.Path == "":
			return d.Path == "" && d.Got == ""
		}
		return at >= r.index(doubt.Step) && (d.Path == "" || below(d.Path, doubt.Path) || below(doubt.Path, d.Path))
	})
}

func (r *Reference) index(step string) int {
	return slices.IndexFunc(r.Steps, func(s StepReference) bool { return s.Name == step })
}

var (
	// counters and histories match the last part of the path of a field in which a controller
	// counts or lists past events, rather than describes the current state.
	counters  = regexp.MustCompile(`(?i)(retr(y|ies)|attempts?|revisions?|generations?|restarts?|failures?|errors?|syncs?|reconciles?|reconciliations?|transitions?)(count|s|total)?$`)
	histories = regexp.MustCompile(`(?i)(history|histories|transitions|attempts|events|log|logs)$`)
	lasts     = regexp.MustCompile(`(?i)^(last|previous)(error|failure|retry|attempt|transition|restart|message|reason)`)
)

// advanced reports whether a difference is in a field of a status in which the controller records
// past events, and whether the run records no fewer events than the reference. A restart or a retry
// is legal, and leaves traces in such fields.
func advanced(d state.Difference) bool {
	if !isStatus(d.Path) {
		return false
	}
	parts := strings.FieldsFunc(d.Path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	name := parts[len(parts)-1]
	var want, got any
	if d.Want != "" && json.Unmarshal([]byte(d.Want), &want) != nil || d.Got != "" && json.Unmarshal([]byte(d.Got), &got) != nil {
		want, got = nil, nil // cut off
	}
	if slices.ContainsFunc(parts[1:], func(part string) bool { return lasts.MatchString(part) }) {
		return true
	}
	before, _ := want.(float64)
	after, number := got.(float64)
	if counters.MatchString(name) && number && after > before {
		return true
	}
	old, _ := want.([]any)
	list, isList := got.([]any)
	return histories.MatchString(name) && (isList && len(list) > len(old) || !isList && strings.HasPrefix(d.Got, "["))
}
