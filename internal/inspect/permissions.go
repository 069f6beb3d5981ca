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

// PermissionReport compares the permissions that controllers used with those that roles grant.
type PermissionReport struct {
	// Used lists what was used or refused, sorted by resource.
	Used []*Use `json:"used"`
	// Account is the service account whose roles are known, as NAMESPACE/NAME.
	Account string `json:"account,omitempty"`
	// Unused lists what the roles grant, and no request has used.
	Unused []Unused `json:"unused"`
	// Unknown names roles that are bound to the account, but whose rules are not known.
	Unknown []string `json:"unknown,omitempty"`
	// Note states what the absence of a use means.
	Note string `json:"note"`
}

const (
	noteUnused = "Unused means that no request in this session used the permission since it was granted. A session exercises only a part of the code: " +
		"errors, upgrades and deletions can need more. koboshi check compares the roles with many runs, and reports what none of them used."
	noteAdmin   = "The controller runs as an administrator, so no permission of a role was used or refused."
	noteNoRoles = "The session does not contain the roles of the controller, so unused permissions are not known. koboshi dev records them, and the report of koboshi check lists them."
)

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
		return
	}
	s.useGrants(c, p)
}

// Permissions returns the permissions that controllers used, and those that they did not use.
func (s *Session) Permissions() PermissionReport {
	r := PermissionReport{Used: []*Use{}, Unused: []Unused{}, Note: noteNoRoles}
	for _, u := range s.uses {
		r.Used = append(r.Used, u)
	}
	slices.SortFunc(r.Used, func(a, b *Use) int { return comparePermissions(a.Permission, b.Permission) })
	if s.grants == nil {
		return r
	}
	r.Account, r.Note = s.grants.Grants.Account, noteUnused
	if r.Account == "" {
		r.Note = noteAdmin
		return r
	}
	r.Unused, r.Unknown = s.unused(), s.grants.Grants.Unknown
	return r
}

func comparePermissions(a, b Permission) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource),
		strings.Compare(a.Path, b.Path), strings.Compare(a.Verb, b.Verb))
}
