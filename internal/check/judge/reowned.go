package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// handover is a write with which the controller gave an object to another owner, although the owner
// that controlled the object still lived.
type handover struct {
	change           state.Change
	object, from, to string // canonical names
	uids             [2]string
}

// what describes a handover by the kinds of the objects. A controller that hands objects from one
// revision to the next may have one more revision after a fault.
func (t handover) what() string {
	kind := func(name string) string { kind, _, _ := strings.Cut(name, " "); return kind }
	return kind(t.object) + " from " + kind(t.from) + " to " + kind(t.to)
}

// reowned finds objects that the controller takes from one living owner for another, although it
// never does so without the fault. An orphan may be adopted, and an owner may be replaced by its
// successor. An object never has two controlling owners, because the API server refuses that.
func reowned(in *input) []Finding {
	if in.meddled() || in.seesOldStates() {
		return nil
	}
	for _, t := range in.handovers() {
		if !slices.Contains(in.ref.Reowned, t.what()) {
			return []Finding{in.handover(t, "the controller takes %s from %s, which still exists, for %s")}
		}
	}
	return nil
}

// reownedAlone finds objects that the controller takes from one living owner for another in every run,
// although nothing asks it to. A single handover may be the purpose of a controller, so it counts only
// between resources of the scenario that name neither the object nor each other. If the controller also
// does the opposite in the same step, two owners fight for the object.
func reownedAlone(inputs []*input) (findings []Finding) {
	if len(inputs) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for _, t := range inputs[0].unasked() {
		always := !seen[t.object]
		for _, other := range inputs[1:] {
			always = always && slices.ContainsFunc(other.unasked(), func(o handover) bool { return o.object == t.object })
		}
		if always {
			seen[t.object] = true
			findings = append(findings, inputs[0].handover(t, "even without a fault, the controller takes %s from %s, which still exists, for %s"))
		}
	}
	return findings
}

// unasked returns the handovers that nothing asks for.
func (in *input) unasked() (found []handover) {
	all := in.handovers()
	for i, t := range all {
		reversed := slices.ContainsFunc(all[:i], func(e handover) bool {
			return e.object == t.object && e.uids == [2]string{t.uids[1], t.uids[0]} && in.stepAt(e.change.Revision) == in.stepAt(t.change.Revision)
		})
		if reversed || in.strangers(t) {
			found = append(found, t)
		}
	}
	return found
}

// strangers reports whether both owners are resources that another client than the controller created
// and that the controller reconciles, and whether no resource names the object, and no owner the other.
func (in *input) strangers(t handover) bool {
	if in.named(t.change.Ref) || in.selected(t.change.After) {
		return false
	}
	var names []string
	var contents []map[string]any
	for _, uid := range t.uids {
		i := slices.IndexFunc(in.run.History.Changes, func(c state.Change) bool { return c.Op == state.Created && c.After.Metadata("uid") == uid })
		if i < 0 {
			return false // it existed before
		}
		c := in.run.History.Changes[i]
		if in.authors[c.Revision] != nil || !slices.Contains(in.subject.Primary, c.Ref.String()) {
			return false
		}
		names = append(names, c.Ref.Name)
		if last, found := in.byUID(uid); found {
			contents = append(contents, content(last.After))
		}
	}
	return !slices.ContainsFunc(contents, func(c map[string]any) bool { return mentions(c, names...) })
}

// handovers returns all writes of the controller that give an object from one living owner to another.
func (in *input) handovers() (found []handover) {
	for _, c := range in.run.History.Changes {
		if c.Op != state.Updated || in.authors[c.Revision] == nil || c.Before.Metadata("uid") != c.After.Metadata("uid") {
			continue
		}
		was, is := controllerOf(c.Before), controllerOf(c.After)
		if was == "" || is == "" || was == is {
			continue
		}
		living := in.run.History.Living(c.Revision)
		from, to := in.livingOwner(living, was), in.livingOwner(living, is)
		if from != "" && to != "" {
			found = append(found, handover{change: c, object: in.labels.Of(c.Ref), from: from, to: to, uids: [2]string{was, is}})
		}
	}
	return found
}

// controllerOf returns the UID of the owner that controls an object, or "".
func controllerOf(object state.Object) string {
	for _, owner := range object.Owners() {
		if owner.Controller {
			return owner.UID
		}
	}
	return ""
}

// livingOwner returns the canonical name of the object with a UID, or "" if the object is gone or being
// deleted.
func (in *input) livingOwner(living state.Snapshot, uid string) string {
	for ref, object := range living {
		if object.Metadata("uid") == uid && !object.Deleting() {
			return in.labels.Of(ref)
		}
	}
	return ""
}

func (in *input) handover(t handover, format string) Finding {
	f := in.finding(TakenOver, in.stepAt(t.change.Revision), fmt.Sprintf(format, t.object, t.from, t.to),
		[]state.Difference{{Object: t.object, Path: "metadata.ownerReferences", Want: `"` + t.from + `"`, Got: `"` + t.to + `"`}})
	f.LastAction = in.request(in.authors[t.change.Revision].Call)
	return f
}
