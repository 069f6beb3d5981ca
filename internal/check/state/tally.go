package state

// Tally counts creations and deletions by canonical name.
type Tally struct {
	Creates map[string]int `json:"creates,omitempty"`
	Deletes map[string]int `json:"deletes,omitempty"`
}

// Tally counts the changes after one revision, up to and including another revision. Tally omits
// objects that Kubernetes' own controllers create and delete, and objects that are not compared.
func (m *Mask) Tally(h History, labels *Labels, after, upTo int64) Tally {
	t := Tally{Creates: map[string]int{}, Deletes: map[string]int{}}
	for _, c := range h.Between(after, upTo) {
		if c.Op == Updated {
			continue
		}
		key := labels.Of(c.Ref)
		if !m.Counts(c, key) {
			continue
		}
		if c.Op == Created {
			t.Creates[key]++
		} else {
			t.Deletes[key]++
		}
	}
	return t
}

// Counts reports whether a change concerns an object that is compared and was not made by
// one of Kubernetes' own controllers. key is the canonical name of the object.
func (m *Mask) Counts(c Change, key string) bool {
	object := c.After
	if object == nil {
		object = c.Before
	}
	return !m.ignores(c.Ref, object, key, "") && !object.MadeUpstream()
}

// Content returns the canonical content of one object of a history. If anyOrder is set, it sorts
// all lists. Content is used to compare states of the same object within a run, so it keeps random
// values as they are.
func (m *Mask) Content(labels *Labels, ref Ref, object Object, anyOrder bool) any {
	key := labels.Of(ref)
	content := canonicaliser{m: m, at: place{kind: ref.GroupKind.String(), object: key}, name: nameOf(key), labels: labels, generation: object.Generation()}.object(object)
	content = walkRandom(content, "", func(_ string, r random) any { return r.raw })
	if anyOrder {
		sortLists(content)
	}
	return content
}

func sortLists(v any) {
	switch typed := v.(type) {
	case map[string]any:
		for _, item := range typed {
			sortLists(item)
		}
	case []any:
		for _, item := range typed {
			sortLists(item)
		}
		sortByJSON(typed)
	}
}
