package state

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/scrub"
)

// gap is a difference, with details for learning.
type gap struct {
	Difference
	field     string // the path without the identities of list elements
	want, got any
	order     bool // the elements are the same, but their order differs
	step      string
}

// Diff returns the differences between w, the expected world, and got. A condition that is
// more up to date than expected does not count as a difference.
func (w World) Diff(got World) []Difference {
	var differences []Difference
	for _, g := range w.gaps(got) {
		differences = append(differences, g.Difference)
	}
	return differences
}

func (w World) gaps(got World) []gap {
	keys := map[string]bool{}
	for key := range w.Objects {
		keys[key] = true
	}
	for key := range got.Objects {
		keys[key] = true
	}
	var gaps []gap
	for _, key := range sortedKeys(keys) {
		gaps = append(gaps, objectGaps(key, w.Objects[key], got.Objects[key])...)
	}
	return gaps
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// objectGaps compares all objects that share a canonical name as multisets.
func objectGaps(key string, want, got []any) []gap {
	want, got = withoutEqual(want, got)
	var gaps []gap
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want) && got[i] == nil:
			gaps = append(gaps, whole(key, "there", ""))
		case i >= len(got) && want[i] == nil:
			gaps = append(gaps, whole(key, "", "there"))
		case i >= len(want):
			gaps = append(gaps, whole(key, "", short(got[i])))
		case i >= len(got):
			gaps = append(gaps, whole(key, short(want[i]), ""))
		case want[i] == nil:
			gaps = append(gaps, whole(key, "", short(got[i])))
		case got[i] == nil:
			gaps = append(gaps, whole(key, short(want[i]), ""))
		default:
			d := &differ{object: key}
			d.value("", "", want[i], got[i])
			gaps = append(gaps, d.gaps...)
		}
	}
	return gaps
}

func whole(key, want, got string) gap {
	return gap{Difference: Difference{Object: key, Want: want, Got: got}}
}

// withoutEqual removes the objects that are in both lists.
func withoutEqual(want, got []any) (left, right []any) {
	right = slices.Clone(got)
	for _, w := range want {
		i := slices.IndexFunc(right, func(g any) bool { return same(w, g) })
		if i < 0 {
			left = append(left, w)
			continue
		}
		right = slices.Delete(right, i, i+1)
	}
	return left, right
}

func same(want, got any) bool {
	if want == nil || got == nil {
		return want == nil && got == nil
	}
	d := &differ{}
	d.value("", "", want, got)
	return len(d.gaps) == 0
}

type differ struct {
	object string
	gaps   []gap
}

// note records that want and got differ. The caller does not compare the parts of want and
// got.
func (d *differ) note(shown, field string, want, got any) {
	wanted, gotten := excerpts(want, got)
	d.gaps = append(d.gaps, gap{
		Difference: Difference{Object: d.object, Path: shown, Want: wanted, Got: gotten},
		field:      field, want: want, got: got,
	})
}

func (d *differ) value(shown, field string, want, got any) {
	wantMap, isMap := want.(map[string]any)
	gotMap, alsoMap := got.(map[string]any)
	wantList, isList := want.([]any)
	gotList, alsoList := got.([]any)
	switch {
	case isMap && alsoMap:
		for _, key := range sortedKeys(union(wantMap, gotMap)) {
			d.value(showKey(shown, key), join(field, key), wantMap[key], gotMap[key])
		}
	case isList && alsoList:
		d.list(shown, field, wantList, gotList)
	case want == outdated && got == current:
	case !reflect.DeepEqual(want, got):
		d.note(shown, field, want, got)
	}
}

func (d *differ) list(shown, field string, want, got []any) {
	if reflect.DeepEqual(want, got) {
		return
	}
	if reordered(want, got) {
		d.note(shown, field, want, got)
		d.gaps[len(d.gaps)-1].order = true
		return
	}
	key := identity(want)
	if key != "" && identity(got) == key || len(want) == 0 && identity(got) != "" || key != "" && len(got) == 0 {
		if key == "" {
			key = identity(got)
		}
		d.identified(shown, field, key, want, got)
		return
	}
	if len(want) != len(got) {
		d.note(shown, field, want, got)
		return
	}
	for i := range want {
		d.value(shown+"[]", join(field, "[]"), want[i], got[i])
	}
}

// identified compares list elements that have names.
func (d *differ) identified(shown, field, key string, want, got []any) {
	wantBy, wantIDs := byIdentity(want, key)
	gotBy, gotIDs := byIdentity(got, key)
	before := len(d.gaps)
	missing, extra := 0, 0
	for id := range union(wantBy, gotBy) {
		if gotBy[id] == nil {
			missing++
		} else if wantBy[id] == nil {
			extra++
		}
	}
	for _, id := range sortedKeys(union(wantBy, gotBy)) {
		part := join(field, "[]")
		// If only one of the lists lacks elements, the path of the rule for each missing element
		// contains the element's name. If both lists lack elements, the names themselves probably
		// differ.
		if (wantBy[id] == nil || gotBy[id] == nil) && (missing == 0 || extra == 0) {
			part = element(field, id)
		}
		d.value(shown+"["+id+"]", part, wantBy[id], gotBy[id])
	}
	if len(d.gaps) == before && !slices.Equal(wantIDs, gotIDs) && !conditions(field, want) {
		d.note(shown, field, texts(wantIDs), texts(gotIDs))
		d.gaps[len(d.gaps)-1].order = true
	}
}

func byIdentity(list []any, key string) (map[string]any, []string) {
	by := map[string]any{}
	var ids []string
	for _, item := range list {
		m, _ := item.(map[string]any)
		id, _ := m[key].(string)
		by[id] = item
		ids = append(ids, id)
	}
	return by, ids
}

func texts(list []string) []any {
	var out []any
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

// reordered reports whether both lists have the same elements in a different order.
func reordered(want, got []any) bool {
	if len(want) != len(got) {
		return false
	}
	a, b := slices.Clone(want), slices.Clone(got)
	sortByJSON(a)
	sortByJSON(b)
	return reflect.DeepEqual(a, b)
}

func union(a, b map[string]any) map[string]any {
	both := map[string]any{}
	for key := range a {
		both[key] = nil
	}
	for key := range b {
		both[key] = nil
	}
	return both
}

func showKey(shown, key string) string {
	if strings.ContainsAny(key, "./ ") {
		return shown + "[" + key + "]"
	}
	return join(shown, key)
}

// longest is the number of characters to which a displayed value is truncated.
const longest = 60

func short(v any) string { return truncate(plain(v)) }

// plain returns a value as JSON, without known secret values. Secrets are removed before the
// text is cut, because a part of a secret value is not recognized.
func plain(v any) []rune {
	if v == nil {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return []rune(jsonType(v))
	}
	return []rune(scrub.Known.Text(string(data)))
}

func truncate(text []rune) string {
	if len(text) > longest {
		return string(text[:longest-1]) + "…"
	}
	return string(text)
}

// excerpts returns two different values, cut to the part that shows the difference.
func excerpts(want, got any) (wanted, gotten string) {
	const before = 20 // characters that are kept in front of the difference
	a, b := plain(want), plain(got)
	common := 0
	for common < min(len(a), len(b)) && a[common] == b[common] {
		common++
	}
	if start := common - before; start > 0 && truncate(a) == truncate(b) {
		a, b = slices.Concat([]rune("…"), a[start:]), slices.Concat([]rune("…"), b[start:])
	}
	return truncate(a), truncate(b)
}
