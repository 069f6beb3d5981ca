package plan

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func isSecret(ref state.Ref) bool { return ref.GroupKind == schema.GroupKind{Kind: "Secret"} }

// secretKey returns a key of a Secret whose value may be changed, as a path below the field. Only
// hashes of values are known, so the value must be the same in all runs. A value that the
// controller generates once is expected to differ between runs, and copies of it exist elsewhere.
func secretKey(ref state.Ref, object state.Object, field string, runs []*evidence.Run) (path []string, ok bool) {
	if field != "data" || object["immutable"] == true {
		return nil, false
	}
	data, _ := object[field].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if !strings.Contains(key, ".") && sameInAll(ref, field, key, runs) { // a path cannot express a dot
			return []string{key}, true
		}
	}
	return nil, false
}

// sameInAll reports whether a key of an object has the same values, in the same order, in all
// runs.
func sameInAll(ref state.Ref, field, key string, runs []*evidence.Run) bool {
	if len(runs) == 0 {
		return false
	}
	first := valuesOf(ref, field, key, runs[0])
	return len(first) > 0 && !slices.ContainsFunc(runs, func(run *evidence.Run) bool {
		return !slices.Equal(first, valuesOf(ref, field, key, run))
	})
}

// valuesOf returns the values that a key of an object had in a run, one after the other.
func valuesOf(ref state.Ref, field, key string, run *evidence.Run) (values []any) {
	for _, c := range run.History.Changes {
		if c.Ref == ref && c.After != nil {
			data, _ := c.After[field].(map[string]any)
			values = append(values, data[key])
		}
	}
	return slices.Compact(values)
}
