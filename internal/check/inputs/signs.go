package inputs

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
)

// sign is something that happened in a step: a field of an object has changed, or, without a path, an
// object was created or deleted, or a request went to an external endpoint.
type sign struct{ what, path string }

// affects reports whether a step has a sign that is no noise.
func (j *judging) affects(step *evidence.Step) bool {
	return slices.ContainsFunc(j.signs(step), func(s sign) bool { return !j.noise[s] })
}

// moves reports whether a step changes, creates or deletes another object than the changed one, or
// sends a request to an external endpoint.
func (j *judging) moves(step *evidence.Step) bool {
	own := sign{what: j.KindGroup + " " + j.Object.Name}.what
	if j.Object.Namespace != "" {
		own = j.KindGroup + " " + j.Object.Namespace + "/" + j.Object.Name
	}
	return slices.ContainsFunc(j.signs(step), func(s sign) bool { return !j.noise[s] && s.what != own })
}

// named returns the signs of a step that are no noise, as texts.
func (j *judging) named(step *evidence.Step) (all []string) {
	for _, s := range j.signs(step) {
		if text := s.what + " " + s.path; !j.noise[s] && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// signs describes what happened in a step in addition to the change that it made itself: each
// changed field, each created or deleted object, and each kind of request to an external endpoint.
// Times, and the generation that a controller has seen, are left out.
func (j *judging) signs(step *evidence.Step) (all []sign) {
	own := true // the first change of the object is the step itself
	for _, c := range j.run.History.Between(step.Began, step.Rested) {
		switch {
		case own && c.Op == state.Updated && j.isObject(c.Ref):
			own = false // even if it only touches the object
		case !c.Effective() || request.IsLeaseKind(c.Ref.GroupKind):
		case c.Op == state.Updated:
			for _, path := range changed(map[string]any(c.Before), map[string]any(c.After)) {
				if path != "metadata.annotations."+request.LeaderAnnotation {
					all = append(all, sign{nameOf(c.Ref), path})
				}
			}
		default:
			all = append(all, sign{what: string(c.Op) + " " + nameOf(c.Ref)})
		}
	}
	for _, c := range j.calls(step) {
		switch path, _, _ := strings.Cut(c.Path, "?"); {
		case c.Endpoint != "": // the content of the request may be the effect
			all = append(all, sign{what: fmt.Sprintf("%s %s %s %d", c.Endpoint, c.Verb, path, c.RequestSize)})
		case request.IsWork(c) && isRefusal(c.Code):
			all = append(all, sign{what: "refused " + c.Verb + " " + path})
		}
	}
	return all
}

// consequence matches the signs, as texts, of what the controllers of Kubernetes do after others have changed an
// object: the statuses of their kinds, and objects that they make, often with random names.
var consequence = regexp.MustCompile(`^(?:[^ .]+(?:\.(?:apps|batch|autoscaling|policy|networking\.k8s\.io))? [^ ]+ status(?:\.|$)` +
	`|(?:created |deleted )?(?:Pod|Event|Event\.events\.k8s\.io|Endpoints|EndpointSlice\.discovery\.k8s\.io|ReplicaSet\.apps|ControllerRevision\.apps) )`)

// newWorkload matches the signs that a controller has made Pods, or what makes them.
var newWorkload = regexp.MustCompile(`^created (?:Pod|Deployment\.apps|StatefulSet\.apps|DaemonSet\.apps|Job\.batch) `)

// MakesWorkload reports whether a trial led to a new workload.
func (t *Tried) MakesWorkload() bool { return slices.ContainsFunc(t.Signs, newWorkload.MatchString) }

func isConsequence(sign string) bool { return consequence.MatchString(sign) }

// isRefusal reports whether the API server refused a write because of its content or its author. A
// conflict, or an object that does not exist, may be due to chance.
func isRefusal(code int) bool {
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusNotFound && code != http.StatusConflict
}

// nameOf returns the kind, namespace and name of an object.
func nameOf(ref state.Ref) string {
	if ref.Namespace == "" {
		return ref.String() + " " + ref.Name
	}
	return ref.String() + " " + ref.Namespace + "/" + ref.Name
}

// changes reports whether a step changed the object. A webhook may have restored the old value.
func (j *judging) changes(step *evidence.Step) bool {
	return slices.ContainsFunc(j.run.History.Between(step.Began, step.Rested), func(c state.Change) bool {
		return j.isObject(c.Ref) && c.Effective()
	})
}

func (j *judging) isObject(ref state.Ref) bool {
	return ref.String() == j.KindGroup && ref.Name == j.Object.Name && ref.Namespace == j.Object.Namespace
}

// bookkeeping are fields that the API server maintains, or that only say what a controller has seen.
var bookkeeping = []string{"observedGeneration", "generation", "resourceVersion", "managedFields"}

// changed returns the paths of the values that differ, without generations and times.
func changed(before, after any) (paths []string) {
	switch was := before.(type) {
	case map[string]any:
		is, _ := after.(map[string]any)
		for _, key := range keys(was, is) {
			if slices.Contains(bookkeeping, key) {
				continue
			}
			for _, path := range changed(was[key], is[key]) {
				paths = append(paths, strings.TrimSuffix(key+"."+path, "."))
			}
		}
		return paths
	case []any:
		is, _ := after.([]any)
		if len(was) != len(is) {
			return []string{"[]"}
		}
		for i := range was {
			for _, path := range changed(was[i], is[i]) {
				paths = append(paths, strings.TrimSuffix(fmt.Sprintf("[%d].%s", i, path), "."))
			}
		}
		return paths
	}
	if reflect.DeepEqual(before, after) || isTime(before) && isTime(after) {
		return nil
	}
	return []string{""}
}

func keys(a, b map[string]any) []string {
	all := map[string]bool{}
	for key := range a {
		all[key] = true
	}
	for key := range b {
		all[key] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func isTime(value any) bool {
	text, isText := value.(string)
	if !isText {
		return false
	}
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}
