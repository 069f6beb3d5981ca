package scenario

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/koboshi-dev/koboshi/internal/check/scrub"
)

// placeholder matches the text that replaces the value of a Secret in a saved scenario: the number
// of the value, its class, its length in bytes, and whether it was encoded.
//
//	$(secret 1 text 24)
var placeholder = regexp.MustCompile(`\$\(secret (\d+) (text|digits|json) (\d+)( base64)?\)`)

// longestFresh limits the length of a fresh value.
const longestFresh = 1 << 20

// Conceal returns the scenario with a placeholder for each value of a Secret, and for each
// copy of the value elsewhere in the scenario, unless the value is an ordinary word. Equal
// values have the same placeholder.
func (s *Scenario) Conceal() (*Scenario, error) {
	c := &concealer{numbers: map[string]int{}}
	return s.rewrite(func(value any) any { return c.copies(c.secrets(value, false)) })
}

// Reveal returns the scenario with a fresh random value for each placeholder. A fresh value has the
// length of the concealed value, and consists of digits if the concealed value did. A JSON object
// becomes an empty object.
func (s *Scenario) Reveal() (*Scenario, error) {
	fresh := map[string]string{}
	return s.rewrite(func(value any) any {
		return mapStrings(value, func(text string) string {
			return placeholder.ReplaceAllStringFunc(text, func(match string) string { return freshValue(match, fresh) })
		})
	})
}

func (s *Scenario) rewrite(change func(any) any) (*Scenario, error) {
	data, err := json.Marshal(s)
	var value map[string]any
	if err == nil {
		err = utiljson.Unmarshal(data, &value)
	}
	if err == nil {
		data, err = json.Marshal(change(value))
	}
	out := &Scenario{}
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return out, nil
}

// concealer replaces values of Secrets. Numbers holds the values that it has seen.
type concealer struct{ numbers map[string]int }

// secrets conceals the values in all Secrets, in patches of Secrets and in conditions on
// Secrets.
func (c *concealer) secrets(value any, secret bool) any {
	switch v := value.(type) {
	case map[string]any:
		if kind, isObject := v["kind"].(string); isObject {
			secret = kind == "Secret"
		}
		for _, key := range sortedKeys(v) {
			switch {
			case secret && key == "data":
				v[key] = c.all(v[key], true)
			case secret && (key == "stringData" || key == "equals"):
				v[key] = c.all(v[key], false)
			case secret && key == "annotations":
				v[key] = withoutApplied(v[key])
			case secret && key == "json":
				c.operations(v[key])
			default:
				v[key] = c.secrets(v[key], secret)
			}
		}
	case []any:
		for i := range v {
			v[i] = c.secrets(v[i], secret)
		}
	}
	return value
}

// operations conceals the values in a JSON patch of a Secret.
func (c *concealer) operations(patch any) {
	list, _ := patch.([]any)
	for _, op := range list {
		op, isObject := op.(map[string]any)
		path, _ := op["path"].(string)
		if !isObject || op["value"] == nil {
			continue
		}
		switch {
		case strings.HasPrefix(path, "/data"):
			op["value"] = c.all(op["value"], true)
		case strings.HasPrefix(path, "/stringData"):
			op["value"] = c.all(op["value"], false)
		}
	}
}

// withoutApplied removes the annotation in which kubectl apply keeps a copy of the object.
func withoutApplied(annotations any) any {
	if m, isObject := annotations.(map[string]any); isObject {
		delete(m, "kubectl.kubernetes.io/last-applied-configuration")
	}
	return annotations
}

// all conceals all strings in a value.
func (c *concealer) all(value any, encoded bool) any {
	return mapStrings(value, func(text string) string { return c.conceal(text, encoded) })
}

func (c *concealer) conceal(text string, encoded bool) string {
	if placeholder.MatchString(text) {
		return text
	}
	if encoded {
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			return c.placeholder(string(plain), " base64")
		}
	}
	return c.placeholder(text, "")
}

func (c *concealer) placeholder(plain, encoding string) string {
	number, seen := c.numbers[plain]
	if !seen {
		number = len(c.numbers) + 1
		c.numbers[plain] = number
	}
	return fmt.Sprintf("$(secret %d %s %d%s)", number, classOf(plain), len(plain), encoding)
}

var onlyDigits = regexp.MustCompile(`^[0-9]+$`)

func classOf(plain string) string {
	var object map[string]any
	switch {
	case onlyDigits.MatchString(plain):
		return "digits"
	case json.Unmarshal([]byte(plain), &object) == nil:
		return "json" // such as the credentials of a registry, which the API server parses
	}
	return "text"
}

// copies conceals copies of the values outside of Secrets.
func (c *concealer) copies(value any) any {
	// A value that contains another value is replaced before the other value.
	values := sortedKeys(c.numbers)
	slices.SortStableFunc(values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, plain := range values {
		if !scrub.Ordinary(plain) {
			pairs = append(pairs, plain, c.placeholder(plain, ""), base64.StdEncoding.EncodeToString([]byte(plain)), c.placeholder(plain, " base64"))
		}
	}
	replacer := strings.NewReplacer(pairs...)
	return mapStrings(value, func(text string) string {
		if placeholder.MatchString(text) {
			return text
		}
		return replacer.Replace(text)
	})
}

// mapStrings replaces all strings in a JSON value, except for keys.
func mapStrings(value any, change func(string) string) any {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			v[key] = mapStrings(v[key], change)
		}
	case []any:
		for i := range v {
			v[i] = mapStrings(v[i], change)
		}
	case string:
		return change(v)
	}
	return value
}

// freshValue returns the value for a placeholder. Fresh holds the values of this scenario,
// keyed by number.
func freshValue(match string, fresh map[string]string) string {
	parts := placeholder.FindStringSubmatch(match)
	plain, made := fresh[parts[1]]
	if !made {
		length, _ := strconv.Atoi(parts[3])
		plain = randomValue(parts[2], min(length, longestFresh))
		fresh[parts[1]] = plain
	}
	if parts[4] != "" {
		return base64.StdEncoding.EncodeToString([]byte(plain))
	}
	return plain
}

func randomValue(class string, length int) string {
	alphabet := "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	switch class {
	case "json":
		return "{}"
	case "digits":
		alphabet = "0123456789"
	}
	value := make([]byte, length)
	_, _ = rand.Read(value) // Read never fails
	for i := range value {
		value[i] = alphabet[int(value[i])%len(alphabet)]
	}
	if length > 1 && class != "digits" {
		// A text of letters alone could be a word, and would not be looked for in other places.
		value[length/2] = '0' + value[length/2]%10
	}
	return string(value)
}
