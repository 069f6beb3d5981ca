package scenario

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// move is one change of one field, with the values to try.
type move struct {
	verb string // as in Trial
	path []any  // text for fields and keys, numbers for list items
	// values holds the values in the order in which they are tried. The value gone removes
	// the field.
	values []any
	rank   int // lower ranks are tried first
}

// gone stands for the value of a field that is removed.
type gone struct{}

// title returns a name for a step with this move, without a leading "spec".
func (m move) title() string {
	parts := []string{m.verb}
	for i, part := range m.path {
		if text, isText := part.(string); isText && (i > 0 || text != "spec" || len(m.path) == 1) {
			parts = append(parts, text)
		}
	}
	return stepTitle(strings.Join(parts, "-"))
}

var notInTitle = regexp.MustCompile(`[^A-Za-z0-9]+`)

func stepTitle(text string) string {
	const most = 54 // this leaves room for undo- or then-, and a number
	text = strings.Trim(notInTitle.ReplaceAllString(text, "-"), "-")
	return strings.TrimRight(text[:min(len(text), most)], "-")
}

// field returns a path for human readers that is the same for all items of a list.
func (m move) field() string {
	var out strings.Builder
	for _, part := range m.path {
		switch p := part.(type) {
		case string:
			out.WriteString("." + p)
		case int:
			out.WriteString("[]")
		}
	}
	return strings.TrimPrefix(out.String(), ".")
}

// severing matches the names of fields that hold the address of a server.
var severing = regexp.MustCompile(`(?i)(url|uri|endpoint|host|address)$`)

// severs reports whether the change may cut the controller off from a server or
// object that it needs.
func (m move) severs() bool {
	name := lastName(m.path)
	return m.verb == "change" && (severing.MatchString(name) || reference.MatchString(name))
}

func (m move) String() string { return m.verb + " " + m.field() }

// The ranks define the order of the moves. Fields of the sample come before fields that
// the sample omits. Removals come last, because they may affect other fields.
const (
	rankPresent = 0
	rankSevers  = 9
	rankAbsent  = 10 // plus the depth
	rankRemove  = 30
)

// podFields matches the names of fields that have the type of a field of a Pod. A controller usually
// passes them on as a whole, so the fields in them seldom show anything that the whole does not.
var podFields = regexp.MustCompile(`(?i)(affinity|tolerations?|securityContext|containers?|volumes?|volumeMounts|env|envFrom|probe|topologySpreadConstraints|resources|lifecycle|template)$`)

// thoroughRank orders the moves if each field is changed alone: what is near the top of the spec comes
// first, and what is in a part of a Pod comes last. Of fields at the same depth, those that the sample
// omits come first: its author has tried the others. Empty objects come last: most of them have been
// tried together before, and an empty spec may make the controller delete everything that it has made.
func (m move) thoroughRank() int {
	const deeper, pod = 10, 1000
	rank, depth := 0, 0
	for i, part := range m.path {
		name, isText := part.(string)
		if !isText {
			continue
		}
		depth++
		if i < len(m.path)-1 && podFields.MatchString(name) {
			rank = pod
		}
	}
	if m.turnsOn() {
		return 2*deeper - 1
	}
	if depth == 1 && m.verb == "empty" {
		depth++
	}
	rank += depth * deeper
	switch {
	case m.severs():
		return rank + deeper/2
	case m.verb == "empty" && slices.ContainsFunc(m.values, isEmptyObject):
		return rank + deeper - 1
	case m.rank < rankAbsent:
		return rank + 1 + m.rank
	}
	return rank
}

// turnsOn reports whether the move turns a switch on.
func (m move) turnsOn() bool {
	return switches.MatchString(lastName(m.path)) && len(m.values) > 0 && m.values[0] == any(true)
}

// mostDepthAbsent is the number of levels that are explored below a field that the sample
// lacks. It is low because a Pod template, for example, has hundreds of fields.
const mostDepthAbsent = 2

// explorer finds the moves of an object.
type explorer struct {
	thorough bool
	moves    []move
	notes    []string
}

// explore returns the moves in the order in which they should be tried, and notes
// about fields that cannot be changed.
func explore(k *customKind, object map[string]any, random *rand.Rand, thorough bool) ([]move, []string) {
	e := &explorer{thorough: thorough}
	for _, name := range sortedKeys(k.schema.Properties) {
		if slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, name) {
			continue
		}
		child := k.schema.Properties[name]
		value, present := object[name]
		e.property(&child, []any{name}, value, present, slices.Contains(k.schema.Required, name), 0)
	}
	e.metadata(object)
	random.Shuffle(len(e.moves), func(i, j int) { e.moves[i], e.moves[j] = e.moves[j], e.moves[i] })
	rank := func(m move) int { return m.rank }
	if thorough {
		rank = move.thoroughRank
	}
	slices.SortStableFunc(e.moves, func(a, b move) int { return rank(a) - rank(b) })
	return e.moves, e.notes
}

// metadata adds a label and an annotation of the user. Controllers often copy them to children.
func (e *explorer) metadata(object map[string]any) {
	if !e.thorough {
		return
	}
	for _, name := range []string{"labels", "annotations"} {
		with := maps.Clone(orEmpty(object, []any{"metadata", name}))
		with["koboshi.example.com/tried"] = "koboshi"
		e.moves = append(e.moves, move{verb: "add-to", path: []any{"metadata", name}, values: []any{with}, rank: rankPresent + 1})
	}
}

// union replaces the member of a union by each of the others: the schema says that exactly one of
// several fields is required.
func (e *explorer) union(s *apiextensionsv1.JSONSchemaProps, at []any, v map[string]any) {
	if !e.thorough {
		return
	}
	members := map[string]bool{}
	for _, option := range s.OneOf {
		for _, name := range option.Required {
			members[name] = true
		}
	}
	for _, name := range sortedKeys(members) {
		member, known := s.Properties[name]
		if _, is := v[name]; is || !known {
			continue
		}
		made, ok := makeUp(&member, name, 0)
		if !ok {
			continue
		}
		other := maps.Clone(v)
		maps.DeleteFunc(other, func(key string, _ any) bool { return members[key] })
		other[name] = made
		e.moves = append(e.moves, move{verb: "switch", path: slices.Clone(at), values: []any{other}, rank: rankPresent + 1})
	}
}

func (e *explorer) add(verb string, rank int, at []any, values ...any) {
	if len(values) == 0 {
		e.note(at, "no other valid value was found")
		return
	}
	m := move{verb: verb, path: slices.Clone(at), values: values, rank: rank}
	if m.severs() {
		m.rank = rankSevers
	}
	e.moves = append(e.moves, m)
}

func (e *explorer) note(at []any, text string) {
	e.notes = append(e.notes, move{path: at}.field()+": "+text)
}

func (e *explorer) property(s *apiextensionsv1.JSONSchemaProps, at []any, value any, present, required bool, absent int) {
	if !present {
		e.absent(s, at, absent)
		return
	}
	e.present(s, at, value)
	e.edges(s, at, value)
	if !required {
		e.add("remove", e.rankRemove(), at, gone{})
	}
}

// rankRemove returns the rank of a removal. If each field is changed alone, a removal cannot affect
// other changes, and a controller that does not expect it often panics.
func (e *explorer) rankRemove() int {
	if e.thorough {
		return rankPresent
	}
	return rankRemove
}

// edges adds values at the edges of what the schema allows, which a person may give and a developer
// may not expect.
func (e *explorer) edges(s *apiextensionsv1.JSONSchemaProps, at []any, value any) {
	if !e.thorough || len(s.Enum) > 0 {
		return
	}
	if value == nil {
		value, _ = hasDefault(s)
	}
	add := func(verb string, edge any) {
		if fits(s, edge) && !reflect.DeepEqual(edge, value) {
			e.moves = append(e.moves, move{verb: verb, path: slices.Clone(at), values: []any{edge}, rank: rankPresent + 2})
		}
	}
	switch s.Type {
	case "object":
		if v, _ := value.(map[string]any); value == nil || len(v) > 0 {
			add("empty", map[string]any{})
		}
	case "array":
		if v, _ := value.([]any); len(v) > 0 {
			add("empty", []any{})
		}
	case "string":
		if s.Format == "" && value != nil {
			add("empty", "")
		}
	case "integer":
		add("zero", int64(0))
		if s.Minimum != nil && *s.Minimum != 0 {
			add("lowest", wholeNumbers(*s.Minimum))
		}
		if s.Maximum != nil && *s.Maximum != 0 && *s.Maximum <= mostBound {
			add("highest", wholeNumbers(*s.Maximum))
		}
	}
}

// mostBound is the highest number that is tried as a bound. A higher one, such as the greatest
// number of replicas that fits into an int32, would only overload the machine.
const mostBound = 100

// present adds the moves for a field that the sample has.
func (e *explorer) present(s *apiextensionsv1.JSONSchemaProps, at []any, value any) {
	switch v := value.(type) {
	case map[string]any:
		switch {
		case len(s.Properties) > 0 && !s.XEmbeddedResource:
			e.union(s, at, v)
			for _, name := range sortedKeys(s.Properties) {
				child := s.Properties[name]
				inner, has := v[name]
				e.property(&child, append(slices.Clone(at), name), inner, has, slices.Contains(s.Required, name), 0)
			}
		case mapValue(s) != nil:
			e.mapping(mapValue(s), at, v)
		default:
			e.note(at, "not changed, because the schema allows any content")
		}
	case []any:
		e.list(s, at, v)
	default:
		e.add("change", rankPresent, at, values(s, lastName(at), value)...)
	}
}

// mapping adds the moves for a map: add a key, change one and remove one.
func (e *explorer) mapping(s *apiextensionsv1.JSONSchemaProps, at []any, v map[string]any) {
	keys := sortedKeys(v)
	key := newKey(lastName(at))
	if len(keys) > 0 {
		key += path.Ext(keys[0])
	}
	if made, ok := makeUp(s, key, 0); ok {
		with := maps.Clone(v)
		with[key] = made
		e.add("add-to", rankPresent+1, at, with)
	}
	if len(keys) == 0 {
		return
	}
	e.present(s, append(slices.Clone(at), keys[0]), v[keys[0]])
	without := maps.Clone(v)
	delete(without, keys[len(keys)-1])
	e.add("shorten", rankRemove, at, without)
}

// list adds the moves for a list: append an item, change the first, remove the last, and
// reverse the order if the order has a meaning.
func (e *explorer) list(s *apiextensionsv1.JSONSchemaProps, at []any, v []any) {
	item := listItem(s)
	if item == nil {
		return
	}
	isSet := s.XListType != nil && *s.XListType == "set"
	if longer := appended(s, item, lastName(at), v); len(longer) > 0 {
		e.add("append", rankPresent+1, at, longer...)
	}
	e.fill(item, at, v)
	if len(v) == 0 {
		return
	}
	e.add("shorten", rankRemove, at, v[:len(v)-1:len(v)-1])
	if len(v) > 1 && !isSet {
		turned := slices.Clone(v)
		slices.Reverse(turned)
		if !reflect.DeepEqual(turned, v) {
			e.add("reorder", rankPresent+1, at, turned)
		}
	}
	first, isObject := v[0].(map[string]any)
	if !isObject || len(item.Properties) == 0 || item.XEmbeddedResource {
		return
	}
	for _, name := range sortedKeys(item.Properties) {
		// An item with a different key would be a different item, so keys are not changed.
		if slices.Contains(s.XListMapKeys, name) {
			continue
		}
		child := item.Properties[name]
		inner, has := first[name]
		e.property(&child, append(slices.Clone(at), 0, name), inner, has, slices.Contains(item.Required, name), 0)
	}
}

// filling is the number of items that are added at once. With fewer items, an order that changes from
// one reconcile to the next may not be noticed.
const filling = 3

// fill adds several different items at once.
func (e *explorer) fill(item *apiextensionsv1.JSONSchemaProps, at []any, v []any) {
	if !e.thorough {
		return
	}
	made, ok := makeUp(item, lastName(at), 0)
	if !ok {
		return
	}
	if items, ok := severalItems(item, lastName(at), made); ok {
		e.moves = append(e.moves, move{verb: "fill", path: slices.Clone(at), values: []any{slices.Concat(v, items)}, rank: rankPresent + 1})
	}
}

// severalItems returns the items of a list that begins with the given one.
func severalItems(item *apiextensionsv1.JSONSchemaProps, name string, first any) (items []any, ok bool) {
	for ok = true; ok && len(items) < filling; first, ok = another(item, name, first) {
		items = append(items, first)
	}
	return items, len(items) == filling
}

// others returns values that differ from one that was added. A list gets several items if it may have them.
func others(s *apiextensionsv1.JSONSchemaProps, name string, value any) (all []any) {
	other, ok := another(s, name, value)
	if !ok {
		return nil
	}
	if list, isList := other.([]any); isList {
		if items, ok := severalItems(listItem(s), name, list[0]); ok {
			all = append(all, items)
		}
	}
	return append(all, other)
}

// another returns a value that differs from the given one in all texts and numbers that it can change.
func another(s *apiextensionsv1.JSONSchemaProps, name string, value any) (any, bool) {
	if s == nil {
		return nil, false
	}
	switch v := value.(type) {
	case map[string]any:
		out, differs := maps.Clone(v), false
		for key, inner := range v {
			child, known := s.Properties[key]
			if !known {
				if mapValue(s) == nil {
					continue
				}
				child = *mapValue(s)
			}
			if other, ok := another(&child, key, inner); ok {
				out[key], differs = other, true
			}
		}
		return out, differs
	case []any:
		if len(v) == 0 {
			return nil, false
		}
		other, ok := another(listItem(s), name, v[0])
		return append([]any{other}, v[1:]...), ok
	}
	if others := values(s, name, value); len(others) > 0 {
		return others[0], true
	}
	return nil, false
}

// appended returns lists with one more item.
func appended(s, item *apiextensionsv1.JSONSchemaProps, name string, v []any) []any {
	var more []any
	if len(v) > 0 {
		// Append a copy of the last item with a different key.
		last, isObject := v[len(v)-1].(map[string]any)
		if !isObject {
			more = values(item, name, v[len(v)-1])
		}
		for _, key := range s.XListMapKeys {
			child := item.Properties[key]
			for _, value := range values(&child, key, last[key]) {
				like := runtime.DeepCopyJSON(last)
				like[key] = value
				more = append(more, like)
			}
		}
	}
	if made, ok := makeUp(item, name, 0); ok {
		more = append(more, made)
	}
	if last, isObject := lastOf(v).(map[string]any); isObject && len(s.XListMapKeys) == 0 {
		more = append(more, runtime.DeepCopyJSON(last))
	}
	var all []any
	for _, one := range more {
		if !slices.ContainsFunc(v, func(o any) bool { return reflect.DeepEqual(o, one) }) || len(more) == 1 {
			all = append(all, append(slices.Clone(v), one))
		}
	}
	return all
}

func lastOf(v []any) any {
	if len(v) == 0 {
		return nil
	}
	return v[len(v)-1]
}

// absent adds the moves for a field that the sample lacks.
func (e *explorer) absent(s *apiextensionsv1.JSONSchemaProps, at []any, depth int) {
	e.edges(s, at, nil)
	switch {
	case anything(s) || s.XEmbeddedResource:
		e.note(at, "not changed, because the schema allows any content")
		return
	case len(s.Properties) > 0 && depth < mostDepthAbsent:
		for _, name := range sortedKeys(s.Properties) {
			child := s.Properties[name]
			e.absent(&child, append(slices.Clone(at), name), depth+1)
		}
		return
	}
	e.add("add", rankAbsent+len(at), at, values(s, lastName(at), nil)...)
	if e.thorough && depth == mostDepthAbsent {
		e.switches(s, at, deepestSwitch)
	}
}

// deepestSwitch is the number of levels below mostDepthAbsent on which switches are sought.
const deepestSwitch = 3

// switches adds the moves that turn on the switches below a field that the sample lacks. A switch often turns
// on a whole part of the controller, such as a backup, with permissions of its own.
func (e *explorer) switches(s *apiextensionsv1.JSONSchemaProps, at []any, levels int) {
	if levels == 0 || anything(s) || s.XEmbeddedResource || podFields.MatchString(lastName(at)) {
		return
	}
	for _, name := range sortedKeys(s.Properties) {
		child, path := s.Properties[name], append(slices.Clone(at), name)
		if isSwitch(name, &child) {
			e.add("add", rankAbsent+len(path), path, true)
		}
		e.switches(&child, path, levels-1)
	}
}

// isSwitch reports whether a field switches on what the fields beside it describe.
func isSwitch(name string, s *apiextensionsv1.JSONSchemaProps) bool {
	return s.Type == "boolean" && switches.MatchString(name)
}

func lastName(at []any) string {
	for _, part := range slices.Backward(at) {
		if name, isText := part.(string); isText {
			return name
		}
	}
	return ""
}

// with returns a copy of object with value at the path. It creates missing objects on the
// path with their required fields. It returns false if the value cannot be set or removed.
func with(s *apiextensionsv1.JSONSchemaProps, object map[string]any, at []any, value any) (map[string]any, bool) {
	changed := runtime.DeepCopyJSON(object)
	ok := put(s, changed, at, value)
	return changed, ok
}

func put(s *apiextensionsv1.JSONSchemaProps, in map[string]any, at []any, value any) bool {
	name, isText := at[0].(string)
	if !isText {
		return false
	}
	if len(at) == 1 {
		if _, out := value.(gone); out {
			_, was := in[name]
			delete(in, name)
			return was
		}
		in[name] = runtime.DeepCopyJSONValue(value)
		return true
	}
	child, known := s.Properties[name]
	if inner := mapValue(s); !known && inner != nil {
		child = *inner
	}
	if _, there := in[name]; !there {
		if _, out := value.(gone); out {
			return false
		}
		made, ok := makeUp(&child, name, 0)
		if !ok {
			return false
		}
		in[name] = runtime.DeepCopyJSONValue(made)
	}
	switch inner := in[name].(type) {
	case map[string]any:
		return put(&child, inner, at[1:], value)
	case []any:
		i, isNumber := at[1].(int)
		if !isNumber || i >= len(inner) || len(at) < 3 || listItem(&child) == nil {
			return false
		}
		item, isObject := inner[i].(map[string]any)
		return isObject && put(listItem(&child), item, at[2:], value)
	}
	return false
}

// unused adds a number to a name that is already used, and marks the result as used.
func unused(name string, used map[string]bool) string {
	free := name
	for i := 2; used[free]; i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	used[free] = true
	return free
}
