package judge

import (
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// onlyMeddled reports whether a wrong end state shows only that the controller does not
// restore what another client deleted or changed.
//
// A controller may create an object once, and leave it to its users from then on. So no
// bug is proven if the deleted object stays missing, or if the changed field keeps the
// other client's value, together with their direct consequences: the objects that the
// object owns, and the statuses that report its state.
//
// Everything else proves a bug: an object that is restored with other content, an object
// that is missing although it was only changed, and a difference in any other object. A
// controller that restores the object after its watches end, or after a restart, also has
// a bug, because its own code shows that it means to maintain the object.
func (in *input) onlyMeddled(differences []state.Difference) bool {
	f := in.run.Fault
	if f == nil || f.Kind != fault.DeleteChild && f.Kind != fault.EditChild {
		return false
	}
	if f.EditsMetadata() {
		return in.keepsMetadata(differences)
	}
	target, dependents := in.target(), in.dependents()
	same := false // whether the target still has what the other client did to it
	for _, d := range differences {
		switch {
		case d.Object == target && f.Kind == fault.DeleteChild:
			if d.Path != "" || d.Got != "" {
				return false
			}
			same = true
		case d.Object == target && below(d.Path, f.Field):
			same = true
		case isStatus(d.Path), dependents[d.Object]:
		default:
			return false
		}
	}
	return same
}

// keepsMetadata reports whether the target of the fault still has the labels or owners that another
// client gave it. A controller that recognizes its objects by them is right to take the target for the
// object of somebody else, and to create another one, so no other difference proves a bug.
func (in *input) keepsMetadata(differences []state.Difference) bool {
	return slices.ContainsFunc(differences, func(d state.Difference) bool {
		return d.Object == in.target() && below(d.Path, in.run.Fault.Field)
	})
}

// below reports whether the path of a difference is the path of a field, or of a part of this
// field.
func below(path, field string) bool {
	rest, found := strings.CutPrefix(path, field)
	return found && field != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func isStatus(path string) bool { return path == "status" || strings.HasPrefix(path, "status.") }

// target returns the canonical name of the object that the fault changes, or "".
func (in *input) target() string {
	if in.run.Fault == nil || in.run.Fault.Target == "" {
		return ""
	}
	kind, name, _ := strings.Cut(in.run.Fault.Target, "/")
	return kind + " " + strings.TrimPrefix(name, "/")
}

// dependents returns the canonical names of the objects that the target of the fault owns,
// directly or through other objects.
func (in *input) dependents() map[string]bool {
	found := map[string]bool{}
	target := in.target()
	for _, c := range in.run.History.Changes {
		object := c.After
		if object == nil {
			object = c.Before
		}
		key := in.labels.Of(c.Ref)
		if key != target && in.ownedBy(target, object) {
			found[key] = true
		}
	}
	return found
}

// ownedBy reports whether the object with the given canonical name owns an object, directly or
// through other owners.
func (in *input) ownedBy(name string, object state.Object) bool {
	for range mostOwners {
		owners := object.Owners()
		if len(owners) == 0 {
			return false
		}
		owner, ok := in.byUID(owners[0].UID)
		if !ok {
			return false
		}
		if in.labels.Of(owner.Ref) == name {
			return true
		}
		object = owner.After
	}
	return false
}

// mostOwners limits how far owner references are followed, because they may form a cycle.
const mostOwners = 8

// notRestored makes the remark about an object that stays deleted or changed.
func (in *input) notRestored(s step, differences []state.Difference) Finding {
	var own []state.Difference
	for _, d := range differences {
		if d.Object == in.target() && !isStatus(d.Path) {
			own = append(own, d)
		}
	}
	what := in.target() + " stays deleted"
	if in.run.Fault.Kind == fault.EditChild {
		what = in.run.Fault.Field + " of " + in.target() + " stays changed"
	}
	when := ", even after a restart"
	if s.Healed != evidence.Never {
		when = untilHelped[s.Healed]
	}
	return in.finding(NotRestored, s.Name, what+when, own)
}
