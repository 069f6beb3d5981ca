package judge

import (
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// regenerated finds random values that were generated again without a reason. If a restart
// changes a password, for example, clients that hold the old one are locked out.
func regenerated(in *input) []Finding {
	for _, s := range in.steps {
		if s.held {
			continue
		}
		for _, at := range in.spans(s) {
			for _, place := range renewed(in.ref.Mask, in.labels, in.run, at) {
				if slices.Contains(s.want.Fresh, place.String()) || !in.mustStay(place, at) {
					continue
				}
				return []Finding{in.finding(DestructiveBlip, s.Name, place.path+" of "+place.object+" is generated again: clients with the old value are locked out",
					[]state.Difference{{Object: place.object, Path: place.path, Want: `"as before"`, Got: `"a new random value"`}})}
			}
		}
	}
	return nil
}

// span is a range of revisions that begins and ends at rest.
type span struct{ from, to int64 }

// spans returns the spans in which a step must not replace a random value. The first begins when
// the previous step came to rest. If the fault was applied when this step was at rest, a second
// span begins at the fault.
func (in *input) spans(s step) (all []span) {
	if s.index > 0 {
		all = append(all, span{in.run.Steps[s.index-1].Rested, s.Rested})
	}
	if f := in.run.Fault; f == nil || f.Kind.Where() != fault.AtRest || !s.Faulty {
		return all
	}
	for _, e := range in.run.Entries {
		if e.Fault != nil && e.Fault.What == "applied" && e.At >= s.BeganAt {
			return append(all, span{revisionAt(in.run, e.At, s.Began), s.Rested})
		}
	}
	return all
}

// mustStay reports whether a renewed value is one that the controller may not replace. Outside of
// Secrets, a value may also be a hash, a number or an identity of the process. So the name of the
// value's field must indicate a credential, or the disturbed run must have shown that restarts and
// touches do not change it. In both cases, the controller itself must have changed the value.
func (in *input) mustStay(p place, at span) bool {
	// The controller may create the target of the fault again, and with it the objects that the
	// target owns.
	if p.object == in.target() || in.dependents()[p.object] {
		return false
	}
	if p.secret {
		return !in.meddled() || isCredential(p.path)
	}
	return !in.meddled() && (isCredential(p.path) || slices.Contains(in.ref.Steady, p.String())) && in.wrote(p, at)
}

// meddled reports whether the fault is a change by another client. Hashes and certificates may
// depend on the object that the client changed.
func (in *input) meddled() bool {
	return in.run.Fault != nil && in.run.Fault.Kind.Meddles()
}

// wrote reports whether the controller itself changed a value.
func (in *input) wrote(p place, at span) bool {
	for _, c := range in.run.History.Between(at.from, at.to) {
		if c.Op == state.Updated && in.authors[c.Revision] != nil && in.labels.Of(c.Ref) == p.object &&
			textAt(c.Before, p.keys) != textAt(c.After, p.keys) {
			return true
		}
	}
	return false
}

// place locates a random value.
type place struct {
	object, path string
	keys         []string // the parts of the path
	secret       bool     // it is in the data of a Secret
}

func (p place) String() string { return p.object + "\n" + p.path }

// renewed returns the random values that differ at the ends of a span, in objects that exist at
// both. In Secrets, all such values count; in other objects, only values that look generated count.
func renewed(m *state.Mask, labels *state.Labels, run *evidence.Run, at span) (places []place) {
	before, after := run.History.At(at.from), run.History.At(at.to)
	for ref, was := range before {
		is := after[ref]
		key := labels.Of(ref)
		if was == nil || is == nil || strings.Contains(key, "*") { // it may be another object with the same canonical name
			continue
		}
		if ref.Kind == "Secret" && ref.Group == "" {
			places = append(places, renewedData(m, key, was, is)...)
		} else if m.Counts(state.Change{Ref: ref, After: is}, key) && was.Metadata("uid") == is.Metadata("uid") {
			places = append(places, renewedTexts(m, labels, ref, was, is)...)
		}
	}
	slices.SortFunc(places, func(a, b place) int { return strings.Compare(a.String(), b.String()) })
	return places
}

func renewedData(m *state.Mask, key string, was, is state.Object) (places []place) {
	for entry := range data(was) {
		field := "data." + entry
		if !m.Random(key, field) {
			continue
		}
		old, _ := data(was)[entry].(string)
		fresh, _ := data(is)[entry].(string)
		if old != "" && fresh != "" && old != fresh {
			places = append(places, place{key, field, []string{"data", entry}, true})
		}
	}
	return places
}

func data(object state.Object) map[string]any {
	d, _ := object["data"].(map[string]any)
	return d
}
