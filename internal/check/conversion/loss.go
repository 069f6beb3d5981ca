package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/koboshi-dev/koboshi/internal/check/scrub"
)

// A Loss is a value that is not the same after a conversion.
type Loss struct {
	Path string
	// Want is the value before the conversion, and Got the value after it; Got is empty if the value is
	// lost.
	Want, Got string
}

// losses returns the values of want that got lacks, or that are different there. What only got has is no
// loss: it is a default, or an annotation that keeps what the other version cannot express.
func losses(path string, want, got any) (all []Loss) {
	switch w := want.(type) {
	case map[string]any:
		g, isMap := got.(map[string]any)
		if !isMap {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			all = append(all, losses(below(path, key), w[key], g[key])...)
		}
		return all
	case []any:
		g, isList := got.([]any)
		if !isList || len(g) != len(w) || kept(w, g) {
			break
		}
		for i := range w {
			all = append(all, losses(fmt.Sprintf("%s[%d]", path, i), w[i], g[i])...)
		}
		return all
	}
	if same(want, got) {
		return nil
	}
	return []Loss{{Path: path, Want: shown(want), Got: shown(got)}}
}

// same reports whether got has everything that want has.
func same(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, isMap := got.(map[string]any)
		return isMap && len(losses("", w, g)) == 0 || empty(want) && got == nil
	case []any:
		g, isList := got.([]any)
		return isList && kept(w, g) || empty(want) && got == nil
	}
	return empty(want) && got == nil || reflect.DeepEqual(want, got) || equivalent(want, got)
}

// kept reports whether each item of a list is in the other one, in any order: the order of many lists has
// no meaning. An item may be the same as several others, so kept reassigns what it has assigned before.
func kept(want, got []any) bool {
	assigned := map[int]int{} // by the index in got, the index in want
	var assign func(i int, seen []bool) bool
	assign = func(i int, seen []bool) bool {
		for j := range got {
			if seen[j] || !same(want[i], got[j]) {
				continue
			}
			seen[j] = true
			if other, taken := assigned[j]; !taken || assign(other, seen) {
				assigned[j] = i
				return true
			}
		}
		return false
	}
	for i := range want {
		if !assign(i, make([]bool, len(got))) {
			return false
		}
	}
	return true
}

// empty reports whether a value is the one that Go's encoding of JSON omits. A field that has it is often
// missing after a conversion, which makes no difference: if there is a default, the API server adds it,
// and this is a change.
func empty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(inner any) bool { return !empty(inner) })
	case []any:
		return len(v) == 0
	}
	return slices.Contains([]any{nil, "", false, int64(0), float64(0)}, value)
}

// equivalent reports whether two values are written differently, but mean the same: 1 and 1.0, 1000m and
// 1, or 60s and 1m0s. A text such as 10m may be a quantity or a duration.
func equivalent(a, b any) bool {
	left, right := fmt.Sprint(a), fmt.Sprint(b)
	return left == right ||
		equal(left, right, resource.ParseQuantity, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 }) ||
		equal(left, right, time.ParseDuration, func(x, y time.Duration) bool { return x == y }) ||
		equal(left, right, instant, time.Time.Equal)
}

// instant reads a time as Kubernetes writes it.
func instant(text string) (time.Time, error) { return time.Parse(time.RFC3339, text) }

// equal reports whether both texts can be read, and are the same then.
func equal[T any](a, b string, read func(string) (T, error), same func(x, y T) bool) bool {
	x, err := read(a)
	if err != nil {
		return false
	}
	y, err := read(b)
	return err == nil && same(x, y)
}

func below(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./ "):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// longest is the number of characters to which a displayed value is cut.
const longest = 60

// shown returns a value as JSON, without secret values.
func shown(value any) string {
	if value == nil {
		return ""
	}
	data, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	text := []rune(scrub.Known.Text(string(data)))
	if len(text) > longest {
		text = append(text[:longest-1:longest-1], '…')
	}
	return string(text)
}
