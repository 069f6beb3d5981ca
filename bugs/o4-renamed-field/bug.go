package o4

// OneField is the desired state in the new version, in which the field has another name.
//
// WRONG: the type lacks the old field, so the first update of a stored fleet removes it. In
// operator-framework/operator-sdk#1317, a field got another name and lost its value in this way;
// kubernetes/kubernetes#111703 shows that each update by a client with another type does the same.
type OneField struct {
	Boats int64 `json:"boats,omitempty"`
}

// Count implements Sized.
func (s OneField) Count() int64 { return s.Boats }
