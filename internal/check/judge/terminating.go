package judge

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/request"
)

// namespaceAlone judges steps that delete a namespace with resources in it. In every run, no object in
// the namespace may keep a finalizer that the controller has set. And outside of the namespace, only
// objects may be left that are also left when the resource itself is deleted.
func namespaceAlone(inputs []*input) (findings []Finding) {
	if len(inputs) == 0 {
		return nil
	}
	for _, s := range inputs[0].ref.Scenario.Steps {
		if s.Delete == nil || s.Delete.Kind != "Namespace" || s.Delete.APIVersion != "v1" || inputs[0].indexOf(s.Name) < 1 {
			continue
		}
		stuck := inAll(inputs, func(in *input) map[string]string { return in.stuckIn(s) })
		for _, key := range sortedNames(stuck) {
			f := inputs[0].finding(StuckTerminating, s.Name,
				fmt.Sprintf("after the deletion of namespace %s, %s keeps the finalizer %s, which the controller set, so the namespace never goes", s.Delete.Name, key, stuck[key]),
				[]state.Difference{{Object: key, Path: "metadata.finalizers", Got: `"` + stuck[key] + `"`}})
			f.Detail = inputs[0].failedIn(s.Name)
			findings = append(findings, f)
			break // the others usually wait for this one, or have the same cause
		}
		if len(stuck) > 0 {
			continue
		}
		left := inAll(inputs, func(in *input) map[string]string { return in.leftOutside(s) })
		var differences []state.Difference
		for _, key := range sortedNames(left) {
			differences = append(differences, state.Difference{Object: key, Got: `"there"`})
		}
		if len(differences) > 0 {
			findings = append(findings, inputs[0].finding(Leak, s.Name, fmt.Sprintf("%s after the deletion of namespace %s, although the deletion of its resource removes it",
				outcome(differences, true), s.Delete.Name), differences))
		}
	}
	return findings
}

// Stuck finds, in runs without a fault that cannot be compared, a deleted namespace that stays because of a
// finalizer. The order in which Kubernetes deletes the objects in a namespace is random, so this may happen in
// some of the runs only.
func Stuck(sc *scenario.Scenario, runs []*evidence.Run, s *subject.Subject) []Finding {
	var found []Finding
	for _, run := range runs {
		if again := namespaceAlone([]*input{newInput(&Reference{Scenario: sc}, run, s)}); len(again) > 0 && again[0].Verdict == StuckTerminating {
			found = append(found, again[0])
		}
	}
	if len(found) == 0 {
		return nil
	}
	found[0].Reproduced, found[0].Attempts = len(found), len(runs)
	return found[:1]
}

// Undeleted finds, in runs without a fault that are not compared, an object that stays after its deletion.
func Undeleted(sc *scenario.Scenario, runs []*evidence.Run, s *subject.Subject) []Finding {
	var inputs []*input
	for _, run := range runs {
		inputs = append(inputs, newInput(&Reference{Scenario: sc}, run, s))
	}
	return undeleted(inputs)
}

// undeleted judges steps that delete an object without waiting until it is gone. In every run, the object must
// not keep a finalizer that the controller removes from another object of its kind, or has removed before. A
// finalizer that it never removes may belong to another controller, or wait for something that the lab lacks.
func undeleted(inputs []*input) []Finding {
	if len(inputs) == 0 {
		return nil
	}
	for _, s := range inputs[0].ref.Scenario.Steps {
		if s.Delete == nil || !s.Delete.Keep || s.Delete.Kind == "Namespace" {
			continue
		}
		held := inAll(inputs, func(in *input) map[string]string { return in.heldAfter(s) })
		for _, key := range sortedNames(held) {
			f := inputs[0].finding(StuckTerminating, s.Name,
				fmt.Sprintf("after its deletion, %s keeps the finalizer %s, which the controller removes from other objects, so it never goes", key, held[key]),
				[]state.Difference{{Object: key, Path: "metadata.finalizers", Got: `"` + held[key] + `"`}})
			f.Detail = inputs[0].failedIn(s.Name)
			f.Reproduced, f.Attempts = len(inputs), len(inputs)
			return []Finding{f}
		}
	}
	return nil
}

// heldAfter returns the object that a step deletes, if a finalizer still holds it when the run ends, with this
// finalizer. Another step may have begun before a slow cleanup ended.
func (in *input) heldAfter(s scenario.Step) map[string]string {
	i := in.indexOf(s.Name)
	if i < 0 || in.run.Steps[i].Restless {
		return nil
	}
	return in.held(in.run.History.Last(), in.released, func(ref state.Ref) bool {
		return ref.Kind == s.Delete.Kind && ref.Name == s.Delete.Name && (s.Delete.Namespace == "" || ref.Namespace == s.Delete.Namespace)
	})
}

// held returns the selected objects that are being deleted at a revision, and have a finalizer that counts, with
// this finalizer.
func (in *input) held(revision int64, counts func(state.Object, string) bool, selected func(state.Ref) bool) map[string]string {
	found := map[string]string{}
	for ref, object := range in.run.History.Living(revision) {
		if !object.Deleting() || !selected(ref) {
			continue
		}
		for _, finalizer := range object.Finalizers() {
			if counts(object, finalizer) {
				found[in.labels.Of(ref)] = finalizer
			}
		}
	}
	return found
}

// released reports whether a finalizer was removed from another object of the same kind.
func (in *input) released(from state.Object, finalizer string) bool {
	return slices.ContainsFunc(in.run.History.Changes, func(c state.Change) bool {
		return c.Before != nil && c.Before["kind"] == from["kind"] && c.Before["apiVersion"] == from["apiVersion"] &&
			c.Before.Metadata("uid") != from.Metadata("uid") && c.Before.Deleting() && slices.Contains(c.Before.Finalizers(), finalizer) &&
			(c.Op == state.Deleted || !slices.Contains(c.After.Finalizers(), finalizer))
	})
}

// LeavesNamespace reports whether, without a fault, an object has a finalizer after some step, or whether
// objects appear in more than one namespace, or in none.
func (r *Reference) LeavesNamespace() bool {
	spaces := map[string]bool{}
	for _, s := range r.Steps {
		for key, contents := range s.World.Objects {
			_, name, _ := strings.Cut(key, " ")
			space, _, namespaced := strings.Cut(name, "/")
			if kind := kindIn(key); kind == "Namespace" || len(existing(contents)) == 0 {
				continue
			}
			if spaces[space] = true; !namespaced || len(spaces) > 1 {
				return true
			}
			for _, content := range contents {
				object, _ := content.(map[string]any)
				if len(state.Object(object).Finalizers()) > 0 {
					return true
				}
			}
		}
	}
	return false
}

// inAll returns those entries that a function returns for every run.
func inAll(inputs []*input, ask func(*input) map[string]string) map[string]string {
	found := ask(inputs[0])
	for _, in := range inputs[1:] {
		others := ask(in)
		for key, value := range found {
			if others[key] != value {
				delete(found, key)
			}
		}
	}
	return found
}

func sortedNames(found map[string]string) (names []string) {
	for name := range found {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// stuckIn returns the objects in a deleted namespace that are being deleted, and have a finalizer that
// the controller added, with this finalizer.
func (in *input) stuckIn(s scenario.Step) map[string]string {
	i := in.indexOf(s.Name)
	if i < 0 {
		return nil
	}
	return in.held(in.run.Steps[i].Rested, in.added, func(ref state.Ref) bool { return ref.Namespace == s.Delete.Name })
}

// added reports whether the controller added a finalizer to an object.
func (in *input) added(object state.Object, finalizer string) bool {
	return slices.ContainsFunc(in.run.History.Changes, func(c state.Change) bool {
		return in.authorOf(c.Revision) && c.After.Metadata("uid") == object.Metadata("uid") &&
			slices.Contains(c.After.Finalizers(), finalizer) && (c.Before == nil || !slices.Contains(c.Before.Finalizers(), finalizer))
	})
}

func (in *input) authorOf(revision int64) bool { return in.authors[revision] != nil }

// failedIn describes the last request of the controller in a step that the server refused.
func (in *input) failedIn(step string) string {
	at := in.indexOf(step)
	for i := len(in.run.Entries) - 1; i >= 0; i-- {
		c := in.run.Entries[i].Call
		if c == nil || in.run.Entries[i].Instance == "" || in.run.Entries[i].At < in.run.Steps[at].BeganAt || c.Code < 400 || c.Target.Resource == "leases" {
			continue
		}
		name := strings.TrimPrefix(c.Target.Namespace+"/"+c.Target.Name, "/")
		return fmt.Sprintf("the last request that failed: %s %s %s: %d", request.Method(c.Verb), c.Target.Resource, name, c.Code)
	}
	return ""
}

// leftOutside returns the objects outside of a deleted namespace that the controller made for a resource in
// it, and that are gone after a step that deletes the resource itself. There must be such a step.
func (in *input) leftOutside(s scenario.Step) map[string]string {
	found := map[string]string{}
	deletion := in.deletionIn(s)
	if deletion == "" {
		return found
	}
	gone, left := in.rested(deletion), in.rested(s.Name)
	living := in.run.History.Living(in.restOf(s.Name))
	for ref := range living {
		if ref.Namespace == s.Delete.Name && in.isPrimary(ref.String()+" ") {
			return found // the resource is not gone yet
		}
	}
	for _, c := range in.run.History.Between(in.restOf(deletion), in.restOf(s.Name)) {
		key := in.labels.Of(c.Ref)
		if c.Op == state.Created && in.authorOf(c.Revision) && c.Ref.Namespace != s.Delete.Name && living[c.Ref].Metadata("uid") == c.After.Metadata("uid") &&
			len(existing(left.Objects[key])) > len(existing(gone.Objects[key])) {
			found[key] = ""
		}
	}
	return found
}

// deletionIn returns the name of the last step before s that deletes a resource in the namespace which s
// deletes.
func (in *input) deletionIn(s scenario.Step) (name string) {
	for _, o := range in.ref.Scenario.Steps {
		switch {
		case o.Name == s.Name:
			return name
		case o.Delete != nil && o.Delete.Namespace == s.Delete.Name && in.indexOf(o.Name) >= 0:
			name = o.Name
		}
	}
	return ""
}
