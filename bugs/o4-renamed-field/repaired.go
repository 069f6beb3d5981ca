package o4

// BothFields is the desired state in the new version, in which the field has another name.
//
// RIGHT: the type keeps the old field, and uses it unless the new one is set.
type BothFields struct {
	Boats *int64 `json:"boats,omitempty"`
	Size  *int64 `json:"size,omitempty"`
}

// Count implements Sized.
func (s BothFields) Count() int64 {
	switch {
	case s.Boats != nil:
		return *s.Boats
	case s.Size != nil:
		return *s.Size
	}
	return 0
}
