package inspect

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Permission is a verb on a resource, as in a role, or on a path outside the API.
type Permission struct {
	Verb  string `json:"verb"`
	Group string `json:"group,omitempty"`
	// Resource includes the subresource: pods/log.
	Resource string `json:"resource,omitempty"`
	Path     string `json:"path,omitempty"`
}

// Use is a permission that controllers used.
type Use struct {
	Permission
	Count int `json:"count"`
	// Refused counts the requests that the server answered with 403. Message is the last
	// answer.
	Refused int           `json:"refused,omitempty"`
	Message string        `json:"message,omitempty"`
	Last    time.Duration `json:"last"`
}

func (s *Session) use(e *trace.Entry) {
	c := e.Call
	if e.Instance == "" || c.Endpoint != "" {
		return
	}
	p := Permission{Verb: c.Verb, Group: c.Target.Group, Resource: c.Target.Resource}
	if c.Target.Subresource != "" {
		p.Resource += "/" + c.Target.Subresource
	}
	if p.Resource == "" {
		p.Path, _, _ = strings.Cut(c.Path, "?")
	}
	u := s.uses[p]
	if u == nil {
		u = &Use{Permission: p}
		s.uses[p] = u
	}
	u.Count++
	u.Last = e.At
	if lacks(c.Code, c.Message) {
		u.Refused++
		u.Message = s.scrub(c.Message)
	}
}

// Permissions returns the permissions that controllers used, sorted by resource.
func (s *Session) Permissions() []*Use {
	all := []*Use{}
	for _, u := range s.uses {
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b *Use) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource),
			strings.Compare(a.Path, b.Path), strings.Compare(a.Verb, b.Verb))
	})
	return all
}
