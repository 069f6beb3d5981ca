package session

import (
	"reflect"

	"github.com/koboshi-dev/koboshi/internal/project"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// recordGrants records what the roles of the manager in a project allow, if that has changed. Call
// it before the roles are applied, so that the roles are recorded before the first request that
// they allow.
func (s *Session) recordGrants(p *project.Project) {
	if s.o.Recording.Log == nil {
		return
	}
	grants := p.Subject.Grants()
	if len(s.o.Project.Command) > 0 {
		for i := range grants.Roles { // no feature of the command is turned off
			grants.Roles[i].Idle = nil
		}
	}
	if s.granted != nil && reflect.DeepEqual(*s.granted, grants) {
		return
	}
	s.granted = &grants
	s.o.Recording.Log.Record(trace.Entry{Grants: &grants})
}
