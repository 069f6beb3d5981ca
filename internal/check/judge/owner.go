package judge

import (
	"iter"
	"maps"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func keys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// The garbage collector deletes an object whose owner it does not find, but it does not act on a
// cluster-scoped object with an owner in a namespace.
const (
	willDelete = ": the garbage collector will delete it"
	ignores    = ": the garbage collector ignores this owner, so the object is left over"
)

// owners finds owner references that the garbage collector cannot follow. owners checks the objects
// that the controller wrote, in the last state of the run.
func owners(in *input) []Finding {
	last := in.last()
	if last == nil || last.held {
		return nil
	}
	key, why := in.badOwner(last.end)
	if key == "" {
		return nil
	}
	return []Finding{in.finding(Diverged, last.Name, key+" "+why,
		[]state.Difference{{Object: key, Path: "metadata.ownerReferences"}})}
}

// badOwner returns an object whose owner is in another namespace or never existed, and what
// the garbage collector does with it.
func (in *input) badOwner(revision int64) (key, why string) {
	living := in.run.History.Living(revision)
	ever := map[string]state.Ref{}
	for ref, object := range in.run.History.Baseline {
		ever[object.Metadata("uid")] = ref
	}
	for _, c := range in.run.History.Changes {
		if c.After != nil {
			ever[c.After.Metadata("uid")] = c.Ref
		}
	}
	for _, c := range in.run.History.Changes {
		if c.Revision > revision || c.After == nil || in.authors[c.Revision] == nil {
			continue
		}
		object := living[c.Ref]
		if object == nil || object.Deleting() || !in.ref.Mask.Counts(c, in.labels.Of(c.Ref)) {
			continue
		}
		for _, owner := range object.Owners() {
			ref, known := ever[owner.UID]
			switch {
			case !known:
				return in.labels.Of(c.Ref), "has an owner that never existed, " + owner.Kind + " " + owner.Name + willDelete
			case ref.Namespace != "" && c.Ref.Namespace == "":
				return in.labels.Of(c.Ref), "is cluster-scoped and has an owner in a namespace, " + in.labels.Of(ref) + ignores
			case ref.Namespace != "" && ref.Namespace != c.Ref.Namespace:
				return in.labels.Of(c.Ref), "has an owner in another namespace, " + in.labels.Of(ref) + willDelete
			}
		}
	}
	return "", ""
}
