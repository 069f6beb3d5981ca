package scenario

import (
	"encoding/json"
	"regexp"
)

// portVariable stands for the port in the URL of an endpoint.
const portVariable = "$(PORT)"

// endpointVariable stands for the address of the proxy before an endpoint.
var endpointVariable = regexp.MustCompile(`\$\(endpoint\.([^()]*)\)`)

// substitute puts addresses for the endpoints that text names.
func (c Cluster) substitute(text string) string {
	return endpointVariable.ReplaceAllStringFunc(text, func(variable string) string {
		name := endpointVariable.FindStringSubmatch(variable)[1]
		if address, known := c.Endpoints[name]; known {
			return address
		}
		return variable
	})
}

// substituteIn does it in all text of a value, in place where that is possible.
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

// substituteJSON does it in the text of JSON. What cannot be read stays as it is.
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
