package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

var (
	// numbered matches a name whose last word is a number, such as web-4 or web.v4. A digit at
	// the end of a hash is no number.
	numbered = regexp.MustCompile(`^(.+[-.](?:v|r|rev|gen)?)([0-9]+)$`)
	// counting matches the last word of keys that hold the number of a revision or of an
	// attempt.
	counting = regexp.MustCompile(`(?i)(revision|generation|attempt)s?$`)
)

// family returns the Ref without the number at the end of the name, and the number.
func family(ref state.Ref) (base state.Ref, number string, ok bool) {
	parts := numbered.FindStringSubmatch(ref.Name)
	if parts == nil {
		return ref, "", false
	}
	ref.Name = parts[1]
	return ref, parts[2], true
}

// histories returns the canonical names of the controller's objects that are entries of a
// history: the name of an entry ends with a number, and the entry itself holds this number as
// its revision, generation or attempt. Which entries exist depends on the steps before.
//
// If one object of a family does not hold its number, none of the family is an entry. So the
// replicas worker-0 and worker-1, which have the same revision, are no history.
func (in *input) histories() map[string]bool {
	held, members := map[state.Ref][]string{}, map[string]state.Ref{}
	for _, c := range in.run.History.Changes {
		base, number, ok := family(c.Ref)
		if !ok || c.Op != state.Created {
			continue
		}
		var paths []string
		if in.authors[c.Revision] != nil {
			paths = holders(c.After, number)
		}
		if before, known := held[base]; known {
			paths = slices.DeleteFunc(paths, func(path string) bool { return !slices.Contains(before, path) })
		}
		held[base], members[in.labels.Of(c.Ref)] = paths, base
	}
	entries := map[string]bool{}
	for key, base := range members {
		if len(held[base]) > 0 {
			entries[key] = true
		}
	}
	return entries
}

// holders returns the paths of the labels, annotations and fields that hold the number as a
// revision, generation or attempt. It omits the status, because an observed generation is
// not the number of the object.
func holders(object state.Object, number string) (paths []string) {
	numbersIn(object.Labels(), "labels", number, &paths)
	numbersIn(object.Annotations(), "annotations", number, &paths)
	fields := fieldsOf(object)
	delete(fields, "status")
	numbersIn(fields, "", number, &paths)
	return paths
}

func numbersIn(fields map[string]any, path, number string, found *[]string) {
	for key, value := range fields {
		at := path + "." + key
		if inner, ok := value.(map[string]any); ok {
			numbersIn(inner, at, number, found)
			continue
		}
		if counting.MatchString(key) && holds(value, number) {
			*found = append(*found, at)
		}
	}
}

// holds reports whether a scalar is the number.
func holds(value any, number string) bool {
	switch value.(type) {
	case string, int64, float64:
	default:
		return false
	}
	want, err := strconv.ParseFloat(number, 64)
	got, wrong := strconv.ParseFloat(fmt.Sprint(value), 64)
	return err == nil && wrong == nil && got == want
}
