package scenario

import (
	"encoding/json"
	"math"
	"net/url"
	"path"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// mostCandidates is the maximum number of values that are tried for a field.
const mostCandidates = 12

// values returns values for the named field, the most sensible first. They differ from the current
// value of the field or, if the current value is nil, from the default of the field. They are valid
// according to the schema of this field alone.
func values(s *apiextensionsv1.JSONSchemaProps, name string, current any) []any {
	if s == nil {
		return nil
	}
	is := current
	if is == nil {
		is, _ = hasDefault(s)
	}
	var all []any
	switch {
	case len(s.Enum) > 0:
		for _, e := range s.Enum {
			if value, ok := fromJSON(e.Raw); ok {
				all = append(all, value)
			}
		}
	case s.XIntOrString:
		all = intOrString(is)
	case s.Type == "boolean":
		all = []any{true, false}
	case s.Type == "integer", s.Type == "number":
		all = numbers(s, is)
	case s.Type == "string":
		all = texts(s, name, is)
	case s.Type == "object" || s.Type == "array":
		if made, ok := makeUp(s, name, 0); ok {
			all = []any{made}
		}
	}
	var fitting []any
	for _, v := range all {
		known := slices.ContainsFunc(fitting, func(f any) bool { return reflect.DeepEqual(f, v) })
		if !known && !reflect.DeepEqual(v, is) && fits(s, v) {
			fitting = append(fitting, v)
		}
	}
	return fitting[:min(len(fitting), mostCandidates)]
}

func intOrString(is any) []any {
	switch v := is.(type) {
	case int64:
		return []any{v + 1, v - 1, int64(1)}
	case string:
		return []any{nextNumber(v), "2", "10%"}
	}
	return []any{int64(2), "128Mi", "10%"}
}

func numbers(s *apiextensionsv1.JSONSchemaProps, is any) []any {
	step := 1.0
	if s.MultipleOf != nil {
		step = *s.MultipleOf
	}
	from := 0.0
	switch v := is.(type) {
	case int64:
		from = float64(v)
	case float64:
		from = v
	}
	around := []float64{from + step, from - step, step, 2 * step, 0}
	if s.Minimum != nil {
		around = append(around, *s.Minimum, math.Ceil(*s.Minimum/step)*step, math.Floor(*s.Minimum/step)*step+step)
	}
	if s.Maximum != nil {
		around = append(around, *s.Maximum, math.Floor(*s.Maximum/step)*step, math.Ceil(*s.Maximum/step)*step-step)
	}
	var all []any
	for _, number := range around {
		all = append(all, wholeNumbers(number))
	}
	return all
}

// hints lists values for text fields, by the name of the field. It is needed because the
// schema often allows any string where the controller expects, for example, a duration.
var hints = []struct {
	name   *regexp.Regexp
	values []string
}{
	{regexp.MustCompile(`(?i)(duration|interval|timeout|period|delay|ttl)$`), []string{"45s", "2m"}},
	{regexp.MustCompile(`(?i)(url|uri|endpoint)$`), []string{"http://127.0.0.1:9001", "https://koboshi.example.com"}},
	{regexp.MustCompile(`(?i)(host|hostname|hostnames|domain)$`), []string{"koboshi.example.com"}},
	{regexp.MustCompile(`(?i)(schedule|cron)$`), []string{"*/5 * * * *"}},
	{regexp.MustCompile(`(?i)image$`), []string{"koboshi:1"}},
	{regexp.MustCompile(`(?i)imagePullPolicy$`), []string{"Always", "IfNotPresent"}},
	{regexp.MustCompile(`(?i)dnsPolicy$`), []string{"Default", "ClusterFirst"}},
	{regexp.MustCompile(`(?i)restartPolicy$`), []string{"OnFailure", "Always"}},
	{regexp.MustCompile(`(?i)serviceType$`), []string{"NodePort", "ClusterIP"}},
	{regexp.MustCompile(`(?i)(externalTrafficPolicy|internalTrafficPolicy)$`), []string{"Local", "Cluster"}},
	{regexp.MustCompile(`(?i)protocol$`), []string{"TCP", "UDP"}},
	{regexp.MustCompile(`(?i)path$`), []string{"/koboshi", "koboshi"}},
}

var formats = map[string][]string{
	"date-time": {"2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"},
	"date":      {"2030-01-01", "2031-01-01"},
	"byte":      {"a29ib3NoaQ==", "dG9r"},
	"duration":  {"45s", "2m"},
	"ipv4":      {"192.0.2.1", "192.0.2.2"}, "ip": {"192.0.2.1"}, "ipv6": {"2001:db8::1"},
	"cidr": {"192.0.2.0/24"},
	"uri":  {"https://koboshi.example.com/"}, "uuid": {"6ba7b810-9dad-41d1-80b4-00c04fd430c8"},
	"email": {"koboshi@example.com"}, "hostname": {"koboshi.example.com"},
}

func texts(s *apiextensionsv1.JSONSchemaProps, name string, is any) []any {
	var all []string
	if now, isText := is.(string); isText && now != "" {
		all = varied(now)
	}
	all = append(all, formats[s.Format]...)
	for _, h := range hints {
		if h.name.MatchString(name) {
			all = append(all, h.values...)
		}
	}
	all = append(all, "koboshi", "b", "1", "45s", "koboshi.example.com", "https://koboshi.example.com", "/koboshi/", "192.0.2.1", "128Mi", "koboshi@example.com")
	if s.Pattern != "" {
		if made, ok := matching(s.Pattern); ok {
			all = append(all, made)
		}
	}
	if s.MinLength != nil && *s.MinLength > 7 && *s.MinLength < 1024 {
		all = append(all, strings.Repeat("b", int(*s.MinLength)))
	}
	values := make([]any, len(all))
	for i, text := range all {
		values[i] = text
	}
	return values
}

// varied returns texts similar to the current one.
func varied(now string) []string {
	next := nextNumber(now)
	if u, err := url.Parse(now); err == nil && u.Host != "" {
		// Keep the host, because an invented host may really exist.
		u.Path = path.Join("/", u.Path, "koboshi")
		return []string{u.String()}
	}
	if strings.Contains(now, "\n") {
		return []string{now + "koboshi\n", now + "koboshi"}
	}
	if next != now && len(now) < 16 {
		return []string{next, now + "-b", "b" + now}
	}
	return []string{now + "-b", now + "b", "b" + now, next}
}

var lastNumber = regexp.MustCompile(`\d{1,15}([^\d]*)$`)

// nextNumber increments the last number in text.
func nextNumber(text string) string {
	at := lastNumber.FindStringSubmatchIndex(text)
	if at == nil {
		return text
	}
	n, err := strconv.ParseInt(text[at[0]:at[2]], 10, 64)
	if err != nil {
		return text
	}
	next := strconv.FormatInt(n+1, 10)
	if zeros := at[2] - at[0] - len(next); zeros > 0 {
		next = strings.Repeat("0", zeros) + next // with as many digits as before
	}
	return text[:at[0]] + next + text[at[2]:]
}

// fits checks the limits for a single value. customKind.refusal checks everything else.
func fits(s *apiextensionsv1.JSONSchemaProps, value any) bool {
	switch v := value.(type) {
	case string:
		length := int64(utf8.RuneCountInString(v))
		if s.MinLength != nil && length < *s.MinLength || s.MaxLength != nil && length > *s.MaxLength {
			return false
		}
		if s.Pattern != "" {
			matches, err := regexp.MatchString(s.Pattern, v)
			return err == nil && matches
		}
	case int64:
		return fitsNumber(s, float64(v))
	case float64:
		return s.Type != "integer" && fitsNumber(s, v)
	}
	return true
}

func fitsNumber(s *apiextensionsv1.JSONSchemaProps, v float64) bool {
	switch {
	case s.Minimum != nil && (v < *s.Minimum || s.ExclusiveMinimum && v == *s.Minimum),
		s.Maximum != nil && (v > *s.Maximum || s.ExclusiveMaximum && v == *s.Maximum):
		return false
	case s.MultipleOf != nil && *s.MultipleOf > 0:
		times := v / *s.MultipleOf
		return math.Abs(times-math.Round(times)) < 1e-9
	}
	return true
}

// mostMaking is the maximum depth of an invented value.
const mostMaking = 8

// makeUp invents a value that has only the required fields.
func makeUp(s *apiextensionsv1.JSONSchemaProps, name string, depth int) (any, bool) {
	if value, has := hasDefault(s); has {
		return value, true
	}
	switch {
	case depth > mostMaking || s.XEmbeddedResource || anything(s):
		return nil, false
	case s.Type == "object":
		return makeObject(s, name, depth)
	case s.Type == "array":
		if item := shape(listItem(s), name); item != nil {
			return []any{item}, true
		}
		item, ok := makeUp(listItem(s), name, depth+1)
		return []any{item}, ok
	}
	if made := values(s, name, nil); len(made) > 0 {
		return made[0], true
	}
	return nil, false
}

// shapes holds items for lists of the Pod API, by the name of the list. Many of their fields are
// optional in the schema, but an item without any of them is not valid.
var shapes = map[string]map[string]any{
	"tolerations":      {"operator": "Exists"},
	"env":              {"name": "KOBOSHI", "value": "koboshi"},
	"imagePullSecrets": {"name": "koboshi"},
	"hostAliases":      {"ip": "192.0.2.1", "hostnames": []any{"koboshi.example.com"}},
	"volumes":          {"name": "koboshi", "emptyDir": map[string]any{}},
	"volumeMounts":     {"name": "koboshi", "mountPath": "/koboshi"},
	"ports":            {"name": "koboshi", "port": int64(9001), "containerPort": int64(9001)},
}

// shape returns an item for a list of the Pod API, without the fields that the schema lacks. It returns
// nil if the list is not one of these.
func shape(item *apiextensionsv1.JSONSchemaProps, name string) any {
	if item == nil || item.Type != "object" || len(shapes[name]) == 0 {
		return nil
	}
	made := map[string]any{}
	for key, value := range shapes[name] {
		if _, known := item.Properties[key]; known {
			made[key] = runtime.DeepCopyJSONValue(value)
		}
	}
	for _, required := range item.Required {
		if made[required] == nil {
			return nil
		}
	}
	if len(made) == 0 {
		return nil
	}
	return made
}

// newKey returns a key for a map in the field with the given name. For limits and
// requests, newKey returns the name of a real resource, because the API server accepts no
// other name there.
func newKey(name string) string {
	switch name {
	case "limits", "requests":
		return "cpu"
	}
	return "koboshi"
}

func makeObject(s *apiextensionsv1.JSONSchemaProps, name string, depth int) (any, bool) {
	object := map[string]any{}
	for _, field := range s.Required {
		property, known := s.Properties[field]
		if !known {
			return nil, false
		}
		value, ok := makeUp(&property, field, depth+1)
		if !ok {
			return nil, false
		}
		object[field] = value
	}
	if inner := mapValue(s); inner != nil {
		key := newKey(name)
		value, ok := makeUp(inner, key, depth+1)
		if !ok {
			return nil, false
		}
		object[key] = value
	}
	return object, true
}

// matching returns a short text that matches a pattern, and whether it found one.
func matching(pattern string) (string, bool) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	var out strings.Builder
	write(&out, parsed.Simplify())
	matches, err := regexp.MatchString(pattern, out.String())
	return out.String(), err == nil && matches && out.Len() > 0
}

func write(out *strings.Builder, re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		out.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		out.WriteRune(oneOf(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		out.WriteByte('b')
	case syntax.OpCapture, syntax.OpPlus:
		write(out, re.Sub[0])
	case syntax.OpRepeat:
		for range re.Min {
			write(out, re.Sub[0])
		}
	case syntax.OpAlternate:
		write(out, re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			write(out, sub)
		}
	}
}

// oneOf returns a character of a class, which is given as ranges. It prefers b.
func oneOf(class []rune) rune {
	for i := 0; i+1 < len(class); i += 2 {
		if class[i] <= 'b' && 'b' <= class[i+1] {
			return 'b'
		}
	}
	for i := 0; i+1 < len(class); i += 2 {
		if class[i] > ' ' && class[i] <= utf8.MaxRune {
			return class[i]
		}
	}
	if len(class) == 0 {
		return 'b'
	}
	return class[0]
}

// mergePatch returns the JSON merge patch that turns one object into another.
func mergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key, was := range from {
		is, still := to[key]
		switch {
		case !still:
			patch[key] = nil
		case reflect.DeepEqual(was, is):
		default:
			before, isObject := was.(map[string]any)
			after, stillObject := is.(map[string]any)
			if isObject && stillObject {
				patch[key] = mergePatch(before, after)
			} else {
				patch[key] = is
			}
		}
	}
	for key, is := range to {
		if _, was := from[key]; !was {
			patch[key] = is
		}
	}
	return patch
}

func mustJSON(value any) json.RawMessage {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // the value was made from JSON
	}
	return data
}
