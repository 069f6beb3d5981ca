package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

var (
	// numbered matches a name whose last word is a number, such as web-4 or web.v4. A digit at
	// the end of a hash is no number.
	numbered = regexp.MustCompile(`^(.+[-.](?:v|r|rev|gen)?)([0-9]+)$`)
	// counting matches the last word of keys that hold the number of a revision or of an
	// attempt.
	counting = regexp.MustCompile(`(?i)(revision|generation|attempt)s?$`)
)

// family splits a canonical name into its beginning and the number at its end.
func family(key string) (base, number string, ok bool) {
	parts := numbered.FindStringSubmatch(key)
	if parts == nil {
		return key, "", false
	}
	return parts[1], parts[2], true
}

// numberedFamilies returns the families of objects whose names end with a number, and reports for
// each whether it is a history. In a history, the controller made all entries, and each entry holds
// its number as its revision, generation or attempt. Which entries of a history exist depends on
// earlier events.
//
// If one object of a family does not hold its number, the family is no history. For example, the
// replicas worker-0 and worker-1, which have the same revision, are no history.
func numberedFamilies(run *evidence.Run, labels *state.Labels, authors map[int64]*trace.Entry) map[string]bool {
	held := map[string][]string{}
	for _, c := range run.History.Changes {
		base, number, ok := family(labels.Of(c.Ref))
		if !ok || c.Op != state.Created {
			continue
		}
		var paths []string
		if authors[c.Revision] != nil {
			paths = holders(c.After, number)
		}
		if before, known := held[base]; known {
			paths = slices.DeleteFunc(paths, func(path string) bool { return !slices.Contains(before, path) })
		}
		held[base] = paths
	}
	families := map[string]bool{}
	for base, paths := range held {
		families[base] = len(paths) > 0
	}
	return families
}

// historiesOf returns the families that are a history in each run in which they exist.
func historiesOf(runs []*evidence.Run, m *state.Mask) (all []string) {
	is := map[string]bool{}
	for _, run := range runs {
		for base, history := range numberedFamilies(run, m.Label(run.History), authors(run)) {
			if before, known := is[base]; known {
				history = history && before
			}
			is[base] = history
		}
	}
	for base, history := range is {
		if history {
			all = append(all, base)
		}
	}
	slices.Sort(all)
	return all
}

// isEntry reports whether an object is an entry of a history.
func (r *Reference) isEntry(key string) bool {
	base, _, ok := family(key)
	return ok && slices.Contains(r.Histories, base)
}

// holders returns the paths of the labels, annotations and fields that hold the number as a
// revision, generation or attempt. holders omits the status, because an observed generation is not
// the number of the object.
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

// newestOnly reduces each history to its newest entry, which takes the name that it has in the
// reference. After a fault, a history may have more entries, or entries with other numbers; the
// content of the newest entry must still be the same.
func (r *Reference) newestOnly(step string, want, got state.World) (state.World, state.World) {
	if len(r.Histories) == 0 {
		return want, got
	}
	wanted, gotten := newestEntries(r.Histories, want), newestEntries(r.Histories, got)
	names := map[string]string{}
	for base, key := range wanted {
		if gotten[base] != "" {
			names[base] = key
		}
	}
	return r.reduced(step, want, wanted, names), r.reduced(step, got, gotten, names)
}

// newestEntries returns, for each family, the entry with the highest number.
func newestEntries(families []string, world state.World) map[string]string {
	newest, highest := map[string]string{}, map[string]int{}
	for key := range world.Objects {
		base, text, ok := family(key)
		number, err := strconv.Atoi(text)
		if !ok || err != nil || !slices.Contains(families, base) {
			continue
		}
		if newest[base] == "" || number > highest[base] {
			newest[base], highest[base] = key, number
		}
	}
	return newest
}

// reduced returns a world in which each family in names contains only its newest entry, under the
// name that names holds for the family. reduced removes the number of this entry, and all values
// that differ between the runs without a fault. If another object names the newest entry, for
// example as the latest revision in a status, reduced removes the number from that name.
func (r *Reference) reduced(step string, world state.World, newest, names map[string]string) state.World {
	objects, latest := map[string][]any{}, map[string]string{}
	for base := range names {
		name, number := nameIn(newest[base]), numbered.FindStringSubmatch(newest[base])[2]
		latest[name] = strings.TrimSuffix(name, number) + "*"
	}
	for key, contents := range world.Objects {
		base, number, _ := family(key)
		switch name := names[base]; {
		case name == "":
			for _, content := range contents {
				objects[key] = append(objects[key], renamed(content, latest))
			}
		case key == newest[base]:
			for _, content := range contents {
				objects[name] = append(objects[name], withoutNumber(r.Mask.Bare(name, step, content), key, number))
			}
		}
	}
	return state.World{Objects: objects}
}

// nameIn returns the object's name in a canonical name.
func nameIn(key string) string { return key[strings.LastIndexAny(key, " /")+1:] }

// renamed returns a copy of a content in which each text that is one of the names is replaced.
func renamed(content any, names map[string]string) any {
	switch typed := content.(type) {
	case map[string]any:
		replaced := map[string]any{}
		for field, value := range typed {
			replaced[field] = renamed(value, names)
		}
		return replaced
	case []any:
		replaced := make([]any, len(typed))
		for i, item := range typed {
			replaced[i] = renamed(item, names)
		}
		return replaced
	case string:
		if name, ok := names[typed]; ok {
			return name
		}
	}
	return content
}

// withoutNumber returns a copy of an entry's content without the number and the name that identify
// the entry.
func withoutNumber(content any, key, number string) any {
	switch typed := content.(type) {
	case map[string]any:
		bare := map[string]any{}
		for field, value := range typed {
			if !counting.MatchString(field) || !holds(value, number) {
				bare[field] = withoutNumber(value, key, number)
			}
		}
		return bare
	case []any:
		var bare []any
		for _, item := range typed {
			bare = append(bare, withoutNumber(item, key, number))
		}
		return bare
	case string:
		name := nameIn(key)
		return strings.ReplaceAll(typed, name, strings.TrimSuffix(name, number)+"*")
	}
	return content
}

// retired reports whether an entry of a history was deleted because a newer one existed, or
// together with its owner. The reference may have no entry with this number.
func (in *input) retired(c state.Change, key string) bool {
	if !in.ref.isEntry(key) {
		return false
	}
	if in.ownerLeaves(c) {
		return true
	}
	base, text, _ := family(key)
	number, _ := strconv.Atoi(text) // the name ends with it
	for ref := range in.run.History.Living(c.Revision) {
		other, higher, ok := family(in.labels.Of(ref))
		if n, err := strconv.Atoi(higher); ok && err == nil && other == base && n > number {
			return true
		}
	}
	return false
}
