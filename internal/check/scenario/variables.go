package scenario

import (
	"encoding/json"
	"regexp"
)

// portVariable stands for the port in the URL of an endpoint.
const portVariable = "$(PORT)"

// endpointVariable stands for the address of the proxy in front of an endpoint.
var endpointVariable = regexp.MustCompile(`\$\(endpoint\.([^()]*)\)`)

// substitute replaces the endpoint variables in text with addresses.
func (c Cluster) substitute(text string) string {
	return endpointVariable.ReplaceAllStringFunc(text, func(variable string) string {
		name := endpointVariable.FindStringSubmatch(variable)[1]
		if address, known := c.Endpoints[name]; known {
			return address
		}
		return variable
	})
}

// substituteIn substitutes variables in all text of a value, in place where possible.
func (c Cluster) substituteIn(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = c.substituteIn(v[key])
		}
	case []any:
		for i := range v {
			v[i] = c.substituteIn(v[i])
		}
	case string:
		return c.substitute(v)
	}
	return value
}

// substituteJSON substitutes variables in the text of JSON. It leaves invalid JSON
// unchanged.
func (c Cluster) substituteJSON(data json.RawMessage) json.RawMessage {
	if !endpointVariable.Match(data) {
		return data
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return data
	}
	out, err := json.Marshal(c.substituteIn(value))
	if err != nil {
		return data
	}
	return out
}

func (c Cluster) substituteAll(all []string) []string {
	out := make([]string, len(all))
	for i, text := range all {
		out[i] = c.substitute(text)
	}
	return out
}

// eachString calls do for all text in a value, in a stable order.
func eachString(value any, do func(string)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			eachString(v[key], do)
		}
	case []any:
		for _, item := range v {
			eachString(item, do)
		}
	case string:
		do(v)
	}
}
