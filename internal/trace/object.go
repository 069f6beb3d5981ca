package trace

import (
	"bytes"
	"encoding/json"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// PatchKey is the key under which RequestObject returns a JSON patch, which is a list.
const PatchKey = "jsonPatch"

// RequestObject decodes the request's body and redacts its secrets. RequestObject returns nil if
// there is no body.
func (c *Call) RequestObject() (map[string]any, error) {
	obj, err := object(c.RawRequest, c.Request, c.Target)
	if err != nil {
		return nil, fmt.Errorf("decoding the request of %s %s: %w", c.Verb, c.Path, err)
	}
	return obj, nil
}

// ResponseObject does the same as RequestObject, for the response's body.
func (c *Call) ResponseObject() (map[string]any, error) {
	obj, err := object(c.RawResponse, c.Response, c.Target)
	if err != nil {
		return nil, fmt.Errorf("decoding the response to %s %s: %w", c.Verb, c.Path, err)
	}
	return obj, nil
}

// EventObject does the same as RequestObject, for the object of the event.
func (w *Watch) EventObject() (map[string]any, error) {
	obj, err := object(w.RawObject, w.Object, w.Target)
	if err != nil {
		return nil, fmt.Errorf("decoding the %s event of %s: %w", w.Type, w.Target.Resource, err)
	}
	return obj, nil
}

// MarshalJSON decodes and redacts the bodies that have not been decoded yet.
func (c Call) MarshalJSON() ([]byte, error) {
	type fields Call
	f := fields(c)
	f.Request = written(c.RawRequest, c.Request, c.Target)
	f.Response = written(c.RawResponse, c.Response, c.Target)
	f.Message = redactMessage(c.Target, c.Reason, c.Message)
	return json.Marshal(f)
}

// MarshalJSON decodes and redacts the object if it has not been decoded yet.
func (w Watch) MarshalJSON() ([]byte, error) {
	type fields Watch
	f := fields(w)
	f.Object = written(w.RawObject, w.Object, w.Target)
	return json.Marshal(f)
}

func object(raw Body, done json.RawMessage, t Target) (map[string]any, error) {
	var v any
	var err error
	if len(done) > 0 {
		err = utiljson.Unmarshal(done, &v)
	} else if v, err = raw.value(); err == nil {
		v = redactAs(t, v)
	}
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	case []any:
		return map[string]any{PatchKey: v}, nil
	}
	return nil, fmt.Errorf("the body is a %T, not an object", v)
}

// written returns a body in the form in which it leaves the process. Most bodies hold
// nothing secret; a fast check finds these bodies, so that they need not be decoded.
func written(raw Body, done json.RawMessage, t Target) json.RawMessage {
	if len(done) > 0 || raw.Len() == 0 {
		return done
	}
	data, err := raw.json()
	if err != nil || data == nil {
		return nil
	}
	if !t.secret() && !maySecret(data) {
		return data
	}
	var v any
	if err := utiljson.Unmarshal(data, &v); err != nil {
		return nil
	}
	out, err := json.Marshal(redactAs(t, v))
	if err != nil {
		return nil
	}
	return out
}

// maySecret reports whether the JSON could contain the name of a kind with secret values,
// possibly written with escapes.
func maySecret(data []byte) bool {
	return bytes.Contains(data, []byte("Secret")) || bytes.Contains(data, []byte(`"Token`)) || bytes.Contains(data, []byte(`\u`))
}
