package inputs

import (
	"maps"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
)

// retained are kinds whose objects may stay for good reasons, or that other controllers keep: data,
// credentials, histories, and what has run.
var retained = []string{
	"PersistentVolumeClaim", "PersistentVolume", "Secret", "ReplicaSet.apps", "ControllerRevision.apps",
	"Pod", "Job.batch", "Event", "Event.events.k8s.io", "Endpoints", "EndpointSlice.discovery.k8s.io",
}

// kept describes an effect of a change that the return to the old value did not undo, or returns "". The
// change consists of all steps from the first to the last. Whether the effect is really one of the
// change, and not a coincidence, is decided by a scenario of its own.
func (j *judging) kept(first, last, undo *evidence.Step) string {
	before, between, after := j.run.History.Living(first.Began), j.run.History.Living(last.Rested), j.run.History.Living(undo.Rested)
	touched := map[state.Ref]bool{}
	for _, c := range j.run.History.Between(first.Began, last.Rested) {
		touched[c.Ref] = true
	}
	refs := slices.SortedFunc(maps.Keys(touched), func(a, b state.Ref) int { return strings.Compare(nameOf(a), nameOf(b)) })
	for _, ref := range refs {
		was, wasThere := before[ref]
		is, isThere := after[ref]
		switch {
		case j.isObject(ref) || request.IsBookkeepingObject(ref.GroupKind, is) || !isThere:
		case !wasThere && slices.Contains(retained, ref.String()):
		case !wasThere:
			if !j.noise[sign{what: string(state.Created) + " " + nameOf(ref)}] {
				return nameOf(ref) + " is still there"
			}
		default:
			since := changed(map[string]any(between[ref]), map[string]any(is))
			for _, path := range changed(map[string]any(was), map[string]any(is)) {
				if !strings.HasPrefix(path, "status") && !j.noise[sign{nameOf(ref), path}] && !overlaps(since, path) {
					return path + " of " + nameOf(ref) + " is still as after the change"
				}
			}
		}
	}
	return ""
}

// overlaps reports whether one of the paths is the given one, contains it, or lies in it.
func overlaps(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(other string) bool { return within(other, path) || within(path, other) })
}
