package inject

import (
	"maps"
	"slices"
	"strings"
)

// otherValues returns different values of the same type that may be valid. otherValues returns
// several values, because a number may be at its limit, and a quantity such as 1Gi stays valid with
// a digit in front, but not with a letter at the end.
func otherValues(value any) (others []any) {
	switch v := value.(type) {
	case bool:
		return []any{!v}
	case int64:
		return []any{v + 1, v - 1}
	case float64:
		return []any{v + 1, v - 1}
	case string:
		if strings.HasPrefix(v, "hmac:") {
			return nil
		}
		return []any{v + "x", "1" + v}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			for _, other := range otherValues(v[key]) {
				others = append(others, map[string]any{key: other})
			}
		}
	}
	return others
}
