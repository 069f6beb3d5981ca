package judge

import (
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// regenerated finds random values that were generated again without a reason. If a restart
// changes a password, for example, clients that hold the old one are locked out.
func regenerated(in *input) []Finding {
	for _, s := range in.steps {
		if s.index == 0 || s.held {
			continue
		}
		for _, place := range renewed(in.ref.Mask, in.labels, in.run, s.index) {
			if slices.Contains(s.want.Fresh, place) || in.aboutTarget(place) {
				continue
			}
			object, path, _ := strings.Cut(place, "\n")
			f := in.finding(DestructiveBlip, s.Name, path+" of "+object+" is generated again: clients with the old value are locked out",
				[]state.Difference{{Object: object, Path: path, Want: `"as before"`, Got: `"a new random value"`}})
			return []Finding{f}
		}
	}
	return nil
}

// aboutTarget reports whether a place is in the object that the fault targets.
func (in *input) aboutTarget(place string) bool {
	object, _, _ := strings.Cut(place, "\n")
	return object == in.target()
}

// renewed returns the random values that a step changed in Secrets that existed both
// before and after it. Other random values, such as hashes of templates, are supposed to
// change when their source changes.
func renewed(m *state.Mask, labels *state.Labels, run *evidence.Run, step int) []string {
	var places []string
	before, after := run.History.At(run.Steps[step-1].Rested), run.History.At(run.Steps[step].Rested)
	for ref, was := range before {
		is := after[ref]
		if was == nil || is == nil || ref.Kind != "Secret" || ref.Group != "" {
			continue
		}
		key := labels.Of(ref)
		if strings.Contains(key, "*") {
			continue // it may be another object with the same canonical name
		}
		for entry := range data(was) {
			field := "data." + entry
			if !m.Random(key, field) {
				continue
			}
			old, _ := data(was)[entry].(string)
			fresh, _ := data(is)[entry].(string)
			if old != "" && fresh != "" && old != fresh {
				places = append(places, key+"\n"+field)
			}
		}
	}
	slices.Sort(places)
	return places
}

func data(object state.Object) map[string]any {
	d, _ := object["data"].(map[string]any)
	return d
}
