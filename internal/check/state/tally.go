package state

// Tally counts creations and deletions by canonical name.
type Tally struct {
	Creates map[string]int `json:"creates,omitempty"`
	Deletes map[string]int `json:"deletes,omitempty"`
}

// Tally counts the changes after one revision, up to and including another. It leaves
// out what Kubernetes' own controllers create and delete, and what is not compared.
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

// Counts reports whether a change is of an object that is compared and that none of
// Kubernetes' own controllers makes. Key is its canonical name.
func (m *Mask) Counts(c Change, key string) bool {
	object := c.After
	if object == nil {
		object = c.Before
	}
	return !m.ignores(c.Ref, object, key) && !object.MadeUpstream()
}

// Content returns the canonical content of one object of a history, with all lists
// sorted if anyOrder is set. It serves to compare states of the same object within a
// run; random values stay as they are.
func (m *Mask) Content(labels *Labels, ref Ref, object Object, anyOrder bool) any {
	content := canonicaliser{m: m, kind: ref.GroupKind.String(), labels: labels, generation: object.Generation()}.object(object)
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
