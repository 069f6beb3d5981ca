package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// outlived holds the objects that the controller made for a resource, and that still existed when
// the resource was created again under the same name. Because of these objects, the controller has
// less to do than when it first handled the resource.
type outlived struct {
	resource  string   // the canonical name of the resource
	survivors []string // canonical names
	// sameLife reports whether both compared states belong to the same life of the resource, which
	// began while the survivors existed.
	sameLife bool
}

// outlived finds a resource that was deleted and created again before the later of two states, and
// the objects that outlived the resource's deletion. outlived returns nil if no resource was
// created again, or if no object that the controller had made for the resource was left.
func (in *input) outlived(earlier, later string) *outlived {
	from, to := in.restOf(earlier), in.restOf(later)
	living := in.run.History.Living(to)
	for _, again := range in.run.History.Changes {
		if again.Op != state.Created || living[again.Ref].Metadata("uid") != again.After.Metadata("uid") || !in.deletedByScenario(again.Ref) {
			continue
		}
		sameLife := again.Revision <= from
		if sameLife && !in.within(earlier, again.Revision) {
			continue // the controller had already used the survivors before
		}
		left := in.survivors(again, living)
		if first := in.born(again.Ref, from); !sameLife && first != nil {
			already := in.survivors(*first, living)
			left = slices.DeleteFunc(left, func(key string) bool { return slices.Contains(already, key) })
		}
		if len(left) > 0 {
			return &outlived{in.labels.Of(again.Ref), left, sameLife}
		}
	}
	return nil
}

// deletedByScenario reports whether a step of the scenario deletes the object.
func (in *input) deletedByScenario(ref state.Ref) bool {
	return slices.ContainsFunc(in.ref.Scenario.Steps, func(s scenario.Step) bool {
		return s.Delete != nil && s.Delete.Kind == ref.Kind && s.Delete.Name == ref.Name && (s.Delete.Namespace == "" || s.Delete.Namespace == ref.Namespace)
	})
}

// born returns the last creation of an object up to a revision, or nil.
func (in *input) born(ref state.Ref, upTo int64) (found *state.Change) {
	for i, c := range in.run.History.Changes {
		if c.Ref == ref && c.Op == state.Created && c.Revision <= upTo {
			found = &in.run.History.Changes[i]
		}
	}
	return found
}

// survivors returns the objects that the controller made for the earlier lives of a resource,
// and that exist until the later of the compared states.
func (in *input) survivors(again state.Change, living state.Snapshot) (left []string) {
	before := in.lives(again)
	if len(before) == 0 {
		return nil
	}
	for _, c := range in.run.History.Changes {
		key, object := in.labels.Of(c.Ref), living[c.Ref]
		if c.Op != state.Created || c.Revision > again.Revision || in.authors[c.Revision] == nil ||
			object.Metadata("uid") != c.After.Metadata("uid") || !in.ref.Mask.Counts(c, key) {
			continue
		}
		if slices.ContainsFunc(before, func(resource state.Object) bool { return belongs(c.After, resource) }) {
			left = append(left, key)
		}
	}
	slices.Sort(left)
	return slices.Compact(left)
}

// lives returns the last state of each earlier life of a resource.
func (in *input) lives(again state.Change) (before []state.Object) {
	for _, c := range in.run.History.Changes {
		if c.Ref == again.Ref && c.Op == state.Deleted && c.Revision < again.Revision {
			before = append(before, c.Before)
		}
	}
	return before
}

// unexplained returns the differences that are no consequence of the survivors. If the resource
// reports a different result, for example if Ready is now False, the survivors explain nothing: a
// controller that has less to do reaches the same result.
func (o *outlived) unexplained(differences []state.Difference) []state.Difference {
	if slices.ContainsFunc(differences, func(d state.Difference) bool { return d.Object == o.resource && isResult(d) }) {
		return differences
	}
	return slices.DeleteFunc(slices.Clone(differences), o.explains)
}

// explains reports whether a difference may be a consequence of the survivors. Such a difference
// concerns an object that the controller did not have to make, or the status of the resource. If
// sameLife is true, the only possible consequence is a value in the status that the earlier state
// lacked. An extra object, or an object with other content, is no consequence.
func (o *outlived) explains(d state.Difference) bool {
	status := d.Object == o.resource && strings.HasPrefix(d.Path, "status")
	if o.sameLife {
		return status && d.Want == ""
	}
	return status || d.Path == "" && d.Got == "" && d.Object != o.resource && !slices.Contains(o.survivors, d.Object)
}

// result matches the paths of values with which a resource reports its result.
var result = regexp.MustCompile(`^status\.(conditions\[.*\]\.status|(.+\.)?(phase|state|health|healthy|ready|\w*[rR]eplicas))$`)

// isResult reports whether a difference is a result with a changed value.
func isResult(d state.Difference) bool {
	return d.Want != "" && d.Got != "" && result.MatchString(d.Path)
}

// Outlived returns a note for each step whose state differs from the state after an earlier step
// because an object outlived its resource.
func Outlived(r *Reference, runs []*evidence.Run, s *subject.Subject) (notes []string) {
	if r == nil || len(runs) == 0 {
		return nil
	}
	in := newInput(r, runs[0], s)
	for _, step := range r.repeated() {
		o := in.outlived(step.SameAs, step.Name)
		if o == nil {
			continue
		}
		differences := in.dependent(step.SameAs, step.Name)
		if i := slices.IndexFunc(differences, o.explains); i >= 0 && len(o.unexplained(differences)) < len(differences) {
			d := differences[i]
			notes = append(notes, fmt.Sprintf("scenario %s: %s outlives the deletion of %s, so after step %s, the controller finds it and does less than in step %s (%s); this is not a finding",
				r.Scenario.Name, strings.Join(o.survivors, ", "), o.resource, step.Name, step.SameAs, strings.TrimSpace(d.Object+" "+d.Path)))
		}
	}
	return notes
}

// restOf returns the revision at which a step came to rest, or 0 if there is no such step.
func (in *input) restOf(step string) int64 {
	if i := in.indexOf(step); i >= 0 {
		return in.run.Steps[i].Rested
	}
	return 0
}

// within reports whether a revision belongs to a step.
func (in *input) within(step string, revision int64) bool {
	i := in.indexOf(step)
	return i >= 0 && revision > in.run.Steps[i].Began && revision <= end(in.run, i)
}
