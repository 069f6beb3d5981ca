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
// credentials, histories, what has run, and addresses.
var retained = []string{
	"PersistentVolumeClaim", "PersistentVolume", "Secret", "ReplicaSet.apps", "ControllerRevision.apps",
	"Pod", "Job.batch", "Event", "Event.events.k8s.io", "Endpoints", "EndpointSlice.discovery.k8s.io", "IPAddress.networking.k8s.io",
}

// MustNotStay reports whether the text of a field must not stay in an object of a kind after the change back.
func MustNotStay(kind string) bool { return !slices.Contains(retained, kind) }

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
		case j.isObject(ref) || request.IsBookkeepingObject(ref.GroupKind, is) || !isThere || isDerived(ref, is):
		case !wasThere && slices.Contains(retained, ref.String()):
		case !wasThere:
			if !j.noise[sign{what: string(state.Created) + " " + nameOf(ref)}] {
				return nameOf(ref) + " is still there"
			}
		default:
			since := changed(map[string]any(between[ref]), map[string]any(is))
			for _, path := range changed(map[string]any(was), map[string]any(is)) {
				if !isResult(path) && !j.noise[sign{nameOf(ref), path}] && !overlaps(since, path) {
					return path + " of " + nameOf(ref) + " is still as after the change"
				}
			}
		}
	}
	return ""
}

// workloads are the built-in kinds whose controllers make objects of their own.
var workloads = []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "Service"}

// isDerived reports whether a controller of Kubernetes maintains an object, as it does the ReplicaSets of a
// Deployment. What is left of a change there is a history of rollouts, or an address.
func isDerived(ref state.Ref, object state.Object) bool {
	return request.IsDerived(ref.GroupKind) || slices.ContainsFunc(object.Owners(), func(o state.Owner) bool {
		return o.Controller && slices.Contains(workloads, o.Kind)
	})
}

// isResult reports whether a field says what has become of an object, and is not a declaration.
func isResult(path string) bool {
	return strings.HasPrefix(path, "status") || path == "metadata.annotations.deployment.kubernetes.io/revision"
}

// overlaps reports whether one of the paths is the given one, contains it, or lies in it.
func overlaps(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(other string) bool { return within(other, path) || within(path, other) })
}
