package upgrade

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// fieldDifferences returns the fields in which two values of one object differ. Times and other values
// that change in each run count as well.
func fieldDifferences(object, path string, was, is any) (all []state.Difference) {
	before, beforeMap := was.(map[string]any)
	after, afterMap := is.(map[string]any)
	old, oldList := was.([]any)
	now, nowList := is.([]any)
	switch {
	case reflect.DeepEqual(was, is):
		return nil
	case (beforeMap || was == nil) && (afterMap || is == nil) && (beforeMap || afterMap):
		for _, key := range keysOf(before, after) {
			all = append(all, fieldDifferences(object, within(path, key), before[key], after[key])...)
		}
		return all
	case oldList && nowList && len(old) > 0 && named(old) && named(now):
		was, is := byName(old), byName(now)
		for _, name := range keysOf(was, is) {
			all = append(all, fieldDifferences(object, path+"["+name+"]", was[name], is[name])...)
		}
		if len(all) > 0 {
			return all
		}
	}
	want, got := shown(was), shown(is)
	if want == got { // the difference is in the part that was cut off
		want, got = later(was, is)
	}
	return []state.Difference{{Object: object, Path: path, Want: want, Got: got}}
}

func keysOf(a, b map[string]any) []string {
	both := maps.Clone(a)
	if both == nil {
		both = map[string]any{}
	}
	maps.Copy(both, b)
	return slices.Sorted(maps.Keys(both))
}

func within(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./ "):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// named reports whether all elements of a list have names.
func named(list []any) bool {
	return !slices.ContainsFunc(list, func(item any) bool {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		return name == ""
	})
}

func byName(list []any) map[string]any {
	by := map[string]any{}
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		by[name] = item
	}
	return by
}

// longest is the number of characters to which a displayed value is cut.
const longest = 60

// later returns the parts of two values that begin a little before their difference.
func later(was, is any) (want, got string) {
	a, b := plain(was), plain(is)
	const before = 20
	common := 0
	for common < min(len(a), len(b)) && a[common] == b[common] {
		common++
	}
	start := max(common-before, 0)
	return "…" + string(cut(a[start:])), "…" + string(cut(b[start:]))
}

// shown returns a value as JSON, without secret values.
func shown(v any) string {
	if v == nil {
		return ""
	}
	return string(cut(plain(v)))
}

// plain returns a value as JSON, without secret values.
func plain(v any) []rune {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return []rune(scrub.Known.Text(string(data)))
}

// cut shortens a long text.
func cut(text []rune) []rune {
	if len(text) > longest {
		return append(text[:longest-1:longest-1], '…')
	}
	return text
}
