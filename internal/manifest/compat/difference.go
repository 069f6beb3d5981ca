package compat

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

// A contentChange is a field whose content an old client reads differently.
type contentChange struct {
	kind    kind
	path    path
	message string
}

// difference compares the content of a field before and after. A field that the old schema
// does not have is ignored, because old clients do not read it.
func difference(at path, n *node, was, is any) (all []contentChange) {
	if equality.Semantic.DeepEqual(was, is) {
		return nil
	}
	switch was := was.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			return mapDifference(at, n, was, is)
		}
	case []any:
		if is, ok := is.([]any); ok && len(is) == len(was) {
			for i := range was {
				all = append(all, difference(at.child(anyItem), path{anyItem}.at(n), was[i], is[i])...)
			}
			return all
		}
	}
	return []contentChange{{differs, at, fmt.Sprintf("%s is %s instead of %s", at, shown(is), shown(was))}}
}

func mapDifference(at path, n *node, was, is map[string]any) (all []contentChange) {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		field := at.child(name)
		now, ok := is[name]
		if !ok {
			all = append(all, contentChange{lost, field, fmt.Sprintf("%s is lost; it was %s", field, shown(was[name]))})
			continue
		}
		all = append(all, difference(field, path{name}.at(n), was[name], now)...)
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[name]; !ok && (path{name}).at(n) != nil {
			field := at.child(name)
			all = append(all, contentChange{differs, field, fmt.Sprintf("%s is %s; it was not set", field, shown(is[name]))})
		}
	}
	return all
}

// shown returns a value as short JSON.
func shown(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if runes := []rune(string(data)); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	return string(data)
}
