package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// World is a snapshot reduced to the parts that should be the same in every run. A World can be
// encoded as JSON and decoded again.
type World struct {
	// Objects holds the contents by canonical name. Several objects may share a generated
	// name; their order is irrelevant. A nil content stands for an object that was in the
	// baseline but is gone.
	Objects map[string][]any `json:"objects"`
}

// Hash returns equal strings for equal worlds.
func (w World) Hash() string {
	data, err := json.Marshal(w)
	if err != nil {
		panic(fmt.Sprintf("a world holds only JSON: %v", err)) // a world never holds anything else
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// random stands for a random value until the other places that hold it are known.
type random struct {
	raw string
	uid bool // it is a UUID that belongs to no known object
}

// MarshalJSON hides the value, which must not affect the order of objects.
func (r random) MarshalJSON() ([]byte, error) {
	if r.uid {
		return []byte(`"uid:unknown"`), nil
	}
	return []byte(`"random"`), nil
}

// Canonical returns the world of a snapshot, without anything that is excluded from the comparison
// after at least one of the steps. So the worlds of different steps can be compared with each
// other.
func (m *Mask) Canonical(s Snapshot) World { return m.CanonicalAfter("", s) }

// CanonicalAfter returns the world of a snapshot that was taken after a step.
func (m *Mask) CanonicalAfter(step string, s Snapshot) World {
	labels := m.labelSnapshot(s)
	world := World{Objects: map[string][]any{}}
	for ref, object := range s {
		key := labels.Of(ref)
		if m.ignores(ref, object, key, step) {
			continue
		}
		var content any
		if object != nil {
			content = canonicaliser{m: m, at: place{ref.GroupKind.String(), key, step}, name: nameOf(key), labels: labels, generation: object.Generation()}.object(object)
		}
		world.Objects[key] = append(world.Objects[key], m.part(key, content))
	}
	m.absent(world)
	for _, contents := range world.Objects {
		sortByJSON(contents)
	}
	world.nameRandoms()
	for _, contents := range world.Objects {
		sortByJSON(contents)
	}
	return world
}

// nameRandoms replaces each random value with a fixed text. If several places hold the
// value, the text names the first of these places. The result shows only which places
// share a value.
func (w World) nameRandoms() {
	places := map[random][]string{}
	w.eachRandom(func(place string, r random) any {
		places[r] = append(places[r], place)
		return r
	})
	token := map[random]string{}
	taken := map[string]int{}
	for _, r := range sortedByPlace(places) {
		first := places[r][0]
		name := "random"
		if r.uid {
			name = "uid:unknown"
		}
		if len(places[r]) > 1 {
			name += ", as in " + first
			if taken[first]++; taken[first] > 1 {
				name += fmt.Sprintf(" #%d", taken[first])
			}
		}
		token[r] = name
	}
	w.eachRandom(func(_ string, r random) any { return token[r] })
}

func sortedByPlace(places map[random][]string) []random {
	var all []random
	for r := range places {
		all = append(all, r)
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := strings.Join(places[all[i]], "\n"), strings.Join(places[all[j]], "\n")
		return a < b || a == b && all[i].raw < all[j].raw
	})
	return all
}

// eachRandom replaces every random value, in an order that depends only on the world.
func (w World) eachRandom(replace func(place string, r random) any) {
	keys := make([]string, 0, len(w.Objects))
	for key := range w.Objects {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		for i, content := range w.Objects[key] {
			w.Objects[key][i] = walkRandom(content, key+" ", replace)
		}
	}
}

func walkRandom(v any, place string, replace func(string, random) any) any {
	switch typed := v.(type) {
	case random:
		return replace(place, typed)
	case map[string]any:
		keys := make([]string, 0, len(typed))
		for key := range typed {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			typed[key] = walkRandom(typed[key], join(place, key), replace)
		}
	case []any:
		for i, item := range typed {
			typed[i] = walkRandom(item, place+"[]", replace)
		}
	}
	return v
}

// join adds a part to a path.
func join(parent, part string) string {
	if parent == "" || strings.HasSuffix(parent, " ") {
		return parent + part
	}
	return parent + "." + part
}

func sortByJSON(list []any) {
	if len(list) < 2 {
		return
	}
	encoded := map[int]string{}
	order := make([]int, len(list))
	for i, item := range list {
		data, _ := json.Marshal(item) // the lists contain only JSON
		encoded[i], order[i] = string(data), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(encoded[a], encoded[b]) })
	sorted := make([]any, len(list))
	for i, from := range order {
		sorted[i] = list[from]
	}
	copy(list, sorted)
}
