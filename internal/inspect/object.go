package inspect

import (
	"slices"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// object is everything that is known about one object.
type object struct {
	ref   Ref
	uid   string
	owner ownerRef // the controlling owner, or the first owner
	// items are the indexes of the entries about the object, in order.
	items []int
	// versions are ordered by resource version.
	versions []version
	streaks  map[string]*streak // by instance
	authors  map[string][]author
	written  []*Write
	writes   int // those that the server accepted
}

// ownerRef is an owner reference.
type ownerRef struct {
	ref Ref // the namespace is unknown
	uid string
}

// whole is the value of item for a version that is not in a list.
const whole = -1

// version locates the content of an object at one resource version: bodies stay in the trace,
// and are decoded on demand.
type version struct {
	rv      int64
	at      time.Duration
	entry   int
	item    int // the index in a list, or whole
	deleted bool
}

func (s *Session) object(ref Ref) *object {
	o := s.objects[ref]
	if o == nil {
		o = &object{ref: ref}
		s.objects[ref] = o
		s.sorted = nil
	}
	return o
}

// rename gives an object another ref, because its kind has become known.
func (s *Session) rename(o *object, ref Ref) {
	delete(s.objects, o.ref)
	s.sorted = nil
	for _, w := range o.written {
		w.Object = ref
	}
	for key, g := range s.groups {
		if key.root != o.ref {
			continue
		}
		delete(s.groups, key)
		g.key.root = ref
		s.groups[g.key] = g
		for _, r := range g.all {
			r.Object = ref
		}
	}
	if other := s.objects[ref]; other != nil {
		other.items = append(slices.Clone(o.items), other.items...)
		slices.Sort(other.items)
		return
	}
	o.ref = ref
	s.objects[ref] = o
}

// addVersion records the content of an object. If the version is already known, addVersion keeps
// the earlier entry. The exception is an entry from the store in another API version than the
// controller uses, because contents can be compared only in the same API version.
func (s *Session) addVersion(o *object, v version, content map[string]any) {
	at, known := slices.BinarySearchFunc(o.versions, v.rv, func(v version, rv int64) int { return int(v.rv - rv) })
	if known {
		o.versions[at].deleted = o.versions[at].deleted || v.deleted
		s.prefer(o, at, v, content)
		return
	}
	newest := at == len(o.versions)
	o.versions = slices.Insert(o.versions, at, v)
	if v.item != whole {
		s.items[v] = encode(content)
	}
	if !newest || content == nil {
		return
	}
	s.relate(o, content)
	s.remember(v, content)
	if o.writes > 0 && !v.deleted && at > 0 {
		s.changedBy(o, at, content)
	}
}

// prefer replaces a version from the store by the same version in the API version that the
// controller uses, if the two API versions differ.
func (s *Session) prefer(o *object, at int, v version, content map[string]any) {
	known := o.versions[at]
	commit := s.entries[known.entry].Commit
	if commit == nil || commit.Object == nil || content == nil || known.deleted || s.entries[v.entry].Commit != nil ||
		commit.Object["apiVersion"] == content["apiVersion"] {
		return
	}
	o.versions[at] = v
	if v.item != whole {
		s.items[v] = encode(content)
	}
	s.remember(v, content)
}

// relate records the UID and the owner of an object.
func (s *Session) relate(o *object, content map[string]any) {
	if uid := metadata(content, "uid"); uid != "" && uid != o.uid {
		o.streaks, o.authors = nil, nil // another object of this name
		o.uid = uid
		s.byUID[uid] = o
	}
	owner := ownerOf(content)
	if owner.uid == o.owner.uid {
		return
	}
	if o.owner.uid != "" {
		s.children[o.owner.uid] = slices.DeleteFunc(s.children[o.owner.uid], func(other *object) bool { return other == o })
	}
	o.owner = owner
	if owner.uid != "" {
		s.children[owner.uid] = append(s.children[owner.uid], o)
	}
}

// ownerOf returns the controlling owner of an object, or its first owner.
func ownerOf(content map[string]any) (owner ownerRef) {
	m, _ := content["metadata"].(map[string]any)
	list, _ := m["ownerReferences"].([]any)
	for i, item := range list {
		ref, _ := item.(map[string]any)
		text := func(key string) string { t, _ := ref[key].(string); return t }
		if controls, _ := ref["controller"].(bool); i == 0 || controls {
			owner = ownerRef{Ref{Group: groupOf(text("apiVersion")), Kind: text("kind"), Name: text("name")}, text("uid")}
		}
	}
	return owner
}

// mostOwners limits the length of a chain of owners, which could be a circle.
const mostOwners = 10

// root returns the object at the end of the chain of owners.
func (s *Session) root(o *object) *object {
	for range mostOwners {
		next := s.ownerObject(o)
		if next == nil || s.primary[o.ref.Kind] {
			return o
		}
		o = next
	}
	return o
}

func (s *Session) ownerObject(o *object) *object {
	if o.owner.uid == "" {
		return nil
	}
	if owner := s.byUID[o.owner.uid]; owner != nil {
		return owner
	}
	for _, namespace := range []string{o.ref.Namespace, ""} {
		ref := o.owner.ref
		ref.Namespace = namespace
		if owner := s.objects[ref]; owner != nil {
			return owner
		}
	}
	return nil
}

// mostCached limits the number of decoded objects that are kept.
const mostCached = 2000

func (s *Session) remember(v version, content map[string]any) {
	if len(s.cache) >= mostCached {
		clear(s.cache)
	}
	s.cache[v] = content
}

// content decodes a version. It returns nil if the object did not exist, or is unknown. The
// content must not be changed.
func (s *Session) content(v version) map[string]any {
	if v.deleted {
		return nil
	}
	if content, found := s.cache[v]; found {
		return content
	}
	content := s.decode(v)
	s.remember(v, content)
	return content
}

func (s *Session) decode(v version) map[string]any {
	if v.item != whole {
		var item map[string]any
		if utiljson.Unmarshal(s.items[v], &item) != nil {
			return nil
		}
		return item
	}
	e := &s.entries[v.entry]
	var body map[string]any
	var err error
	switch {
	case e.Commit != nil:
		return e.Commit.Redacted()
	case e.Watch != nil:
		body, err = e.Watch.EventObject()
	case e.Call != nil:
		body, err = e.Call.ResponseObject()
	}
	if err != nil {
		return nil
	}
	return body
}

// latest returns the last known version, or false if there is none.
func (o *object) latest() (version, bool) {
	if len(o.versions) == 0 {
		return version{}, false
	}
	return o.versions[len(o.versions)-1], true
}

// before returns the version before a resource version, or false if there is none.
func (o *object) before(rv int64) (version, bool) {
	at, _ := slices.BinarySearchFunc(o.versions, rv, func(v version, rv int64) int { return int(v.rv - rv) })
	if at == 0 {
		return version{}, false
	}
	return o.versions[at-1], true
}

func (o *object) at(rv int64) (version, bool) {
	at, found := slices.BinarySearchFunc(o.versions, rv, func(v version, rv int64) int { return int(v.rv - rv) })
	if !found {
		return version{}, false
	}
	return o.versions[at], true
}

// changesAt returns the fields in which a version differs from the one before it, except those
// that the server maintains. It reports false if this is not known: one of the versions is
// missing, or they are in different versions of the API, which convert fields.
func (s *Session) changesAt(o *object, rv int64) (changes []FieldChange, before version, known bool) {
	v, found := o.at(rv)
	before, known = o.before(rv)
	if !found || !known || v.deleted || before.deleted {
		return nil, before, false
	}
	was, is := s.content(before), s.content(v)
	if was == nil || is == nil || was["apiVersion"] != is["apiVersion"] || metadata(was, "uid") != metadata(is, "uid") {
		return nil, before, false
	}
	return effective(Compare(was, is)), before, true
}

// gone reports whether the object was deleted.
func (o *object) gone() bool {
	v, known := o.latest()
	return known && v.deleted
}
