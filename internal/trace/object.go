package trace

import (
	"bytes"
	"encoding/json"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// PatchKey is where RequestObject puts a JSON patch, which is a list and not an
// object.
const PatchKey = "jsonPatch"

// RequestObject decodes the request's body. It is nil if there is none. What is
// secret in it is redacted.
func (c *Call) RequestObject() (map[string]any, error) {
	obj, err := object(c.RawRequest, c.Request, c.Target)
	if err != nil {
		return nil, fmt.Errorf("request of %s %s: %w", c.Verb, c.Path, err)
	}
	return obj, nil
}

// ResponseObject decodes the answer, as RequestObject does the request.
func (c *Call) ResponseObject() (map[string]any, error) {
	obj, err := object(c.RawResponse, c.Response, c.Target)
	if err != nil {
		return nil, fmt.Errorf("answer to %s %s: %w", c.Verb, c.Path, err)
	}
	return obj, nil
}

// EventObject decodes the event's object, as RequestObject does the request.
func (w *Watch) EventObject() (map[string]any, error) {
	obj, err := object(w.RawObject, w.Object, w.Target)
	if err != nil {
		return nil, fmt.Errorf("%s event of %s: %w", w.Type, w.Target.Resource, err)
	}
	return obj, nil
}

// MarshalJSON decodes and redacts the bodies that are still as on the wire.
func (c Call) MarshalJSON() ([]byte, error) {
	type fields Call
	f := fields(c)
	f.Request = written(c.RawRequest, c.Request, c.Target)
	f.Response = written(c.RawResponse, c.Response, c.Target)
	f.Message = redactMessage(c.Target, c.Reason, c.Message)
	return json.Marshal(f)
}

// MarshalJSON decodes and redacts the object if it is still as on the wire.
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
	return nil, fmt.Errorf("the body is a %T and not an object", v)
}

// written is a body as it leaves the process. Most bodies hold nothing secret and
// need not be taken apart for that.
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

// maySecret reports whether JSON could name a kind whose values are secret. A
// kind could also be spelt with escapes.
func maySecret(data []byte) bool {
	return bytes.Contains(data, []byte("Secret")) || bytes.Contains(data, []byte(`"Token`)) || bytes.Contains(data, []byte(`\u`))
}
