package trace

import "encoding/json"

// Commit is a write by any client that the store committed, or an object that existed when
// the recording began.
type Commit struct {
	// Revision is the revision of the store, and the resourceVersion of the object. For an object
	// that existed, Revision is the object's resourceVersion, or 0 if the resourceVersion is
	// unknown.
	Revision int64 `json:"revision"`
	// Op is Existed, Created, Updated or Deleted.
	Op        string `json:"op"`
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Object is the object after the commit; it is nil after a deletion. The object may be shared
	// and must not be changed. The object is redacted when it leaves the process.
	Object map[string]any `json:"object,omitempty"`
	// Size is the size of the object in the store, in bytes, if known.
	Size int `json:"-"`
}

// The values of Commit.Op.
const (
	Existed = "existed"
	Created = "created"
	Updated = "updated"
	Deleted = "deleted"
)

// Redacted returns the object without secrets. It must not be changed.
func (c *Commit) Redacted() map[string]any {
	if c.Object == nil {
		return nil
	}
	data, err := json.Marshal(c.Object)
	if err != nil {
		return nil
	}
	secret := c.Group == "" && c.Kind == "Secret"
	if !secret && !maySecret(data) {
		return c.Object
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return nil
	}
	redact(object, secret)
	return object
}

// MarshalJSON redacts the object.
func (c Commit) MarshalJSON() ([]byte, error) {
	type fields Commit
	f := fields(c)
	f.Object = c.Redacted()
	return json.Marshal(f)
}
