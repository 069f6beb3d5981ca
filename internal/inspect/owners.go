package inspect

import "slices"

// Node is an object in the tree of owners.
type Node struct {
	Object Ref `json:"object"`
	// Summary is the most important condition.
	Summary  string   `json:"summary,omitempty"`
	Deleting bool     `json:"deleting,omitempty"`
	Gone     bool     `json:"gone,omitempty"`
	Writes   int      `json:"writes"` // of the controller
	Finalize []string `json:"finalizers,omitempty"`
	Children []*Node  `json:"children,omitempty"`
	// Asked reports whether the question was about this object.
	Asked bool `json:"asked,omitempty"`
}

// Owners returns the tree of owners that contains an object, from its root. It returns nil for
// an unknown object.
func (s *Session) Owners(ref Ref) *Node {
	o := s.objects[ref]
	if o == nil {
		return nil
	}
	root := o
	for range mostOwners {
		next := s.ownerObject(root)
		if next == nil {
			break
		}
		root = next
	}
	return s.node(root, o, mostOwners)
}

func (s *Session) node(o, asked *object, deep int) *Node {
	n := &Node{Object: o.ref, Writes: len(o.written), Gone: o.gone(), Asked: o == asked}
	if v, found := o.latest(); found && !v.deleted {
		content := s.content(v)
		n.Summary = summary(content)
		n.Deleting = metadata(content, "deletionTimestamp") != ""
		m, _ := content["metadata"].(map[string]any)
		list, _ := m["finalizers"].([]any)
		for _, item := range list {
			if name, isText := item.(string); isText {
				n.Finalize = append(n.Finalize, name)
			}
		}
	}
	if deep == 0 || o.uid == "" {
		return n
	}
	children := slices.Clone(s.children[o.uid])
	slices.SortFunc(children, func(a, b *object) int { return compareRefs(a.ref, b.ref) })
	for _, child := range children {
		n.Children = append(n.Children, s.node(child, asked, deep-1))
	}
	return n
}
