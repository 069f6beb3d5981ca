package judge

import (
	"reflect"
	"regexp"
	"sort"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// leaf is a value that a change has replaced.
type leaf struct {
	path          string // as in a scenario's ignore list
	before, after any    // nil if there is no value
}

// leaves returns the values that differ between two versions of an object, except the fields that
// the API server maintains.
func leaves(before, after state.Object) []leaf {
	var found []leaf
	collect("", map[string]any(before), map[string]any(after), &found)
	sort.SliceStable(found, func(i, j int) bool { return found[i].path < found[j].path })
	return found
}

func collect(path string, before, after any, into *[]leaf) {
	switch path {
	case "metadata.resourceVersion", "metadata.managedFields", "metadata.generation":
		return
	}
	beforeMap, isMap := before.(map[string]any)
	afterMap, alsoMap := after.(map[string]any)
	beforeList, isList := before.([]any)
	afterList, alsoList := after.([]any)
	switch {
	case isMap && alsoMap:
		for key, value := range beforeMap {
			collect(joined(path, key), value, afterMap[key], into)
		}
		for key, value := range afterMap {
			if _, both := beforeMap[key]; !both {
				collect(joined(path, key), nil, value, into)
			}
		}
	case isList && alsoList && len(beforeList) == len(afterList):
		for i := range beforeList {
			collect(path+"[]", beforeList[i], afterList[i], into)
		}
	case !reflect.DeepEqual(before, after):
		*into = append(*into, leaf{path, before, after})
	}
}

func joined(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// timestamp matches a time in the formats that controllers write into objects.
var timestamp = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?(Z|UTC|[+-]\d\d:?\d\d))*`)

// measured reports whether the value is a time both before and after the change, or a number both
// times.
func (l leaf) measured() bool {
	_, isNumber := number(l.before)
	_, stillNumber := number(l.after)
	return isNumber && stillNumber || isTime(l.before) && isTime(l.after)
}

func isTime(v any) bool {
	s, ok := v.(string)
	return ok && timestamp.MatchString(s)
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
