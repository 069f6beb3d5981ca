package compat

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxSize limits the size of the texts, lists and maps that are made to reach a limit.
const maxSize = 300

// literals holds the constants in the CEL rules of a version. Rules compare fields with these
// constants, so the constants and their neighbors are the values worth trying.
type literals struct {
	rules   bool // there is a rule
	numbers []float64
	texts   []string
}

var (
	celText   = regexp.MustCompile(`'([^'\\]*)'|"([^"\\]*)"`)
	celNumber = regexp.MustCompile(`\b\d{1,9}(\.\d+)?\b`)
)

// collect adds the constants in the rules of a schema and everything below it.
func (l *literals) collect(n *node) {
	for _, rule := range n.XValidations {
		l.rules = true
		for _, match := range celText.FindAllStringSubmatch(rule.Rule, -1) {
			l.texts = append(l.texts, match[1]+match[2])
		}
		for _, match := range celNumber.FindAllString(celText.ReplaceAllString(rule.Rule, ""), -1) {
			number, _ := strconv.ParseFloat(match, 64) // the pattern matches only numbers
			l.numbers = append(l.numbers, number)
		}
	}
	for _, child := range n.Properties {
		l.collect(&child)
	}
	for _, child := range []*node{itemsOf(n), valuesOf(n)} {
		if child != nil {
			l.collect(child)
		}
	}
}

// value returns a valid value, as far as the schema of the field alone can tell. If full is set,
// the value contains all fields, and otherwise only the required ones.
func value(n *node, full bool) any {
	switch {
	case n.Default != nil:
		return decoded(n.Default.Raw)
	case len(n.Enum) > 0:
		return decoded(n.Enum[0].Raw)
	case n.XIntOrString:
		return float64(1)
	}
	switch n.Type {
	case "object":
		return object(n, full)
	case "array":
		return list(n, full)
	case "boolean":
		return true
	case "integer", "number":
		return nearestNumber(n, 1)
	case "string":
		return firstText(n)
	}
	return "kept"
}

func decoded(raw []byte) (out any) {
	_ = json.Unmarshal(raw, &out) // a CRD that has been parsed contains only valid JSON
	return out
}

func object(n *node, full bool) map[string]any {
	out := map[string]any{}
	for name, child := range n.Properties {
		if full || slices.Contains(n.Required, name) {
			out[name] = value(&child, full)
		}
	}
	if values := valuesOf(n); values != nil && (full || n.MinProperties != nil) {
		out["key"] = value(values, full)
	}
	if keepsUnknown(n) && full {
		out["unknown"] = "kept"
	}
	if n.XEmbeddedResource {
		out["apiVersion"], out["kind"], out["metadata"] = "v1", "ConfigMap", map[string]any{"name": "embedded"}
	}
	return out
}

func list(n *node, full bool) []any {
	out, items := []any{}, itemsOf(n)
	size := int64(0)
	if full {
		size = 1
	}
	if n.MinItems != nil {
		size = max(size, *n.MinItems)
	}
	for i := range min(size, maxSize) {
		out = append(out, distinct(items, int(i)))
	}
	return out
}

// distinct returns a value that differs for each number, if the schema allows this.
func distinct(n *node, number int) any {
	if n == nil {
		return "kept"
	}
	if n.Type == "object" {
		out := object(n, true)
		for name, child := range n.Properties {
			out[name] = distinct(&child, number)
		}
		return out
	}
	if all := candidates(n, n, &literals{}); number > 0 && len(all) > 0 {
		return all[number%len(all)]
	}
	return value(n, true)
}

// nearestNumber returns the valid number that is nearest to the wanted one.
func nearestNumber(n *node, wanted float64) float64 {
	if n.Maximum != nil {
		wanted = min(wanted, *n.Maximum)
	}
	if n.Minimum != nil {
		wanted = max(wanted, *n.Minimum)
	}
	if n.MultipleOf != nil && *n.MultipleOf > 0 {
		wanted = math.Ceil(wanted / *n.MultipleOf) * *n.MultipleOf
	}
	return wanted
}

// texts lists values of string fields that the usual patterns and formats distinguish.
var texts = []string{
	"a", "value", "Value", "two words", "a-b", "a_b", "a.example.com", "0", "1", "10Gi", "-", "ä", "A/b:c",
	"2026-01-02T03:04:05Z", "2026-01-02", "1h", "YQ==", "10.0.0.1", "10.0.0.0/8", "https://example.com", "a@example.com",
	"123e4567-e89b-12d3-a456-426614174000", "",
}

// firstText returns the first text that the pattern and the length allow. The API server
// checks the format.
func firstText(n *node) string {
	formats := map[string]string{
		"date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "duration": "1h", "byte": "YQ==", "ipv4": "10.0.0.1", "cidr": "10.0.0.0/8",
		"uri": "https://example.com", "email": "a@example.com", "uuid": "123e4567-e89b-12d3-a456-426614174000",
	}
	if example, ok := formats[n.Format]; ok {
		return example
	}
	for _, candidate := range texts {
		if textFits(n, candidate) {
			return candidate
		}
	}
	if n.MinLength != nil && *n.MinLength <= maxSize {
		return strings.Repeat("a", int(*n.MinLength))
	}
	return "a"
}

func textFits(n *node, candidate string) bool {
	length := int64(utf8.RuneCountInString(candidate))
	if n.MinLength != nil && length < *n.MinLength || n.MaxLength != nil && length > *n.MaxLength {
		return false
	}
	matched, err := regexp.MatchString(n.Pattern, candidate)
	return n.Pattern == "" || err != nil || matched
}

// candidates returns values that the old and the new schema may judge differently. Some of these
// values are not valid under the old schema.
func candidates(old, updated *node, l *literals) (all []any) {
	for _, value := range old.Enum {
		all = append(all, decoded(value.Raw))
	}
	if len(old.Enum) == 0 {
		switch typeOf(old) {
		case "string":
			all = textCandidates(old, updated, l)
		case "integer", "number":
			all = numberCandidates(old, updated, l)
		case "int-or-string":
			all = []any{1.0, 0.0, "10%", "a"}
		case "boolean":
			all = []any{true, false}
		case "array":
			all = listCandidates(old, updated)
		case "object":
			all = mapCandidates(old, updated)
		}
	}
	if old.Nullable {
		all = append(all, nil)
	}
	return all
}

func textCandidates(old, updated *node, l *literals) (all []any) {
	for _, length := range sizes(old.MinLength, old.MaxLength, updated.MinLength, updated.MaxLength) {
		all = append(all, strings.Repeat("a", length))
	}
	usual := texts
	if !l.rules && old.Pattern == updated.Pattern && old.Format == updated.Format && len(updated.Enum) == 0 {
		usual = nil // only the length can matter
	}
	for _, text := range slices.Concat(l.texts, []string{firstText(old), "other"}, usual) {
		if textFits(old, text) {
			all = append(all, text)
		}
	}
	return all
}

func numberCandidates(old, updated *node, l *literals) (all []any) {
	numbers := []float64{nearestNumber(old, 1), 0, -1, 2, 3}
	for _, bound := range []*float64{old.Minimum, old.Maximum, updated.Minimum, updated.Maximum} {
		if bound != nil {
			numbers = append(numbers, *bound, *bound-1, *bound+1)
		}
	}
	for _, number := range l.numbers {
		numbers = append(numbers, number, number-1, number+1)
	}
	if old.Type == "number" {
		numbers = append(numbers, 1.5)
	}
	for _, number := range numbers {
		if !slices.Contains(all, any(number)) {
			all = append(all, number)
		}
	}
	return all
}

func listCandidates(old, updated *node) (all []any) {
	items := itemsOf(old)
	if items == nil {
		return nil
	}
	first, second := distinct(items, 0), distinct(items, 1)
	all = []any{[]any{}, []any{first}, []any{first, second}, []any{first, first}}
	for _, size := range sizes(old.MinItems, old.MaxItems, updated.MinItems, updated.MaxItems) {
		var filled []any
		for i := range size {
			filled = append(filled, distinct(items, i))
		}
		all = append(all, filled)
	}
	return all
}

func mapCandidates(old, updated *node) (all []any) {
	if keepsUnknown(old) {
		// Stored objects may contain any value in a field that the new schema defines.
		for _, content := range []any{"kept", 7.0, map[string]any{"kept": true}} {
			some := object(old, false)
			some["unknown"] = content
			for name := range updated.Properties {
				if _, ok := old.Properties[name]; !ok {
					some[name] = content
				}
			}
			all = append(all, some)
		}
	}
	values := valuesOf(old)
	if values == nil {
		return all
	}
	for _, size := range append(sizes(old.MinProperties, old.MaxProperties, updated.MinProperties, updated.MaxProperties), 0, 1) {
		filled := map[string]any{}
		for i := range size {
			filled["key-"+strconv.Itoa(i)] = value(values, true)
		}
		all = append(all, filled)
	}
	return all
}

// sizes returns the sizes at and next to limits.
func sizes(bounds ...*int64) (all []int) {
	for _, bound := range bounds {
		if bound == nil {
			continue
		}
		for _, size := range []int64{*bound - 1, *bound, *bound + 1} {
			if size >= 0 && size <= maxSize {
				all = append(all, int(size))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// set returns a copy of the value in which the field has other content. If drop is set, the
// field is removed. Missing parents are created with their required fields.
func set(base any, n *node, at path, content any, drop bool) any {
	if len(at) == 0 {
		return content
	}
	switch at[0] {
	case anyItem:
		items, _ := base.([]any)
		items = slices.Clone(items)
		if len(items) == 0 {
			items = []any{distinct(itemsOf(n), 0)}
		}
		items[0] = set(items[0], itemsOf(n), at[1:], content, drop)
		return items
	case anyKey:
		values, _ := base.(map[string]any)
		values = maps.Clone(values)
		if len(values) == 0 {
			values = map[string]any{"key": value(valuesOf(n), false)}
		}
		key := slices.Min(slices.Collect(maps.Keys(values)))
		values[key] = set(values[key], valuesOf(n), at[1:], content, drop)
		return values
	}
	fields, _ := base.(map[string]any)
	if fields = maps.Clone(fields); fields == nil {
		fields = object(n, false)
	}
	if len(at) == 1 && drop {
		delete(fields, at[0])
		return fields
	}
	child := n.Properties[at[0]]
	fields[at[0]] = set(fields[at[0]], &child, at[1:], content, drop)
	return fields
}

// at returns the schema of a field, or nil if there is none.
func (p path) at(n *node) *node {
	for _, name := range p {
		if n == nil {
			return nil
		}
		switch child, ok := n.Properties[name]; {
		case name == anyItem:
			n = itemsOf(n)
		case ok:
			n = &child
		default:
			n = valuesOf(n) // a key of a map
		}
	}
	return n
}
