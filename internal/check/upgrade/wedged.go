package upgrade

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// refused finds objects of an installation that the API server does not accept in place of those of the
// other version. kubectl apply fails in the same way.
func (r *run) refused() (findings []judge.Finding) {
	for _, refusal := range r.Refusals {
		verdict := judge.Wedged
		switch {
		case refusal.Step == Down:
			verdict = judge.DowngradeBroken
		case refusal.Stored:
			verdict = judge.StoredVersionsStuck
		}
		f := judge.Upgraded(verdict, r.Run, refusal.Step, refusal.Object, fmt.Sprintf("the API server refuses %s of the %s version in place of the existing one: %s",
			refusal.Object, versionAfter(refusal.Step), refusal.Why), nil)
		findings = append(findings, f)
	}
	return findings
}

// versionAfter names the version that a step installs.
func versionAfter(step string) string {
	if step == Down {
		return "old"
	}
	return "new"
}

// gone finds a version that keeps exiting with the objects of the other version.
func (r *run) gone() []judge.Finding {
	if r.Gone == "" || len(r.Run.Steps) == 0 {
		return nil
	}
	step, verdict := r.Run.Steps[len(r.Run.Steps)-1].Name, judge.Crashed
	switch {
	case step == Down:
		verdict = judge.DowngradeBroken
	case step != Up && !r.Fresh:
		return nil // the old version had not been replaced yet
	case r.Fresh:
		step = Up
	}
	f := judge.Upgraded(verdict, r.Run, step, "exits", fmt.Sprintf("with the objects of the other version, the %s version keeps exiting: %s", versionAfter(step), r.Gone), nil)
	f.Detail = r.Run.Panic
	return []judge.Finding{f}
}

// attempts are the requests of a version to one object that the server rejected.
type attempts struct {
	last  *trace.Entry
	count int
}

// wedged finds objects that the new version tries to write, but whose writes the server rejects until
// the end. On the way back, it does the same for the old version.
func (r *run) wedged() (findings []judge.Finding) {
	known := map[string]attempts{}
	if before := r.before(); before != nil {
		known = r.rejected(Old, 0, before.RestedAt)
	}
	find := func(v judge.Verdict, step string, rejected map[string]attempts) {
		for _, what := range slices.Sorted(maps.Keys(rejected)) {
			if _, before := known[what]; !before {
				findings = append(findings, r.wedge(v, step, what, rejected[what]))
			}
		}
		maps.Copy(known, rejected)
	}
	if settled := r.settled(); settled != nil {
		find(judge.Wedged, Up, r.rejected(New, 0, r.endedAt(settled.Name)))
	}
	if down := r.find(Down); down != nil {
		find(judge.DowngradeBroken, Down, r.rejected(Old, down.BeganAt, r.endedAt(Down)))
	}
	return findings
}

// endedAt returns the time at which the step after the given one began.
func (r *run) endedAt(name string) time.Duration {
	at := slices.IndexFunc(r.Run.Steps, func(s evidence.Step) bool { return s.Name == name })
	if at >= 0 && at+1 < len(r.Run.Steps) {
		return r.Run.Steps[at+1].BeganAt
	}
	return math.MaxInt64
}

func (r *run) wedge(v judge.Verdict, step, what string, a attempts) judge.Finding {
	c := a.last.Call
	f := judge.Upgraded(v, r.Run, step, what, fmt.Sprintf("the %s version cannot write %s: the server rejects its %s with %d, in %s until the end: %s",
		versionAfter(step), what, request.Method(c.Verb), c.Code, noun.Count(a.count, "attempt"), c.Message), nil)
	f.Request = request.Method(c.Verb) + " " + what
	f.Detail = c.Message
	return f
}

// rejections lists the answers with which the server rejects a write because of its content. The same
// write cannot succeed later, unlike after a conflict.
var rejections = []int{http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}

// rejected returns the objects to which the last write of a version was rejected.
func (r *run) rejected(instance string, began, ended time.Duration) map[string]attempts {
	all := map[string]attempts{}
	for i := range r.Run.Entries {
		e := &r.Run.Entries[i]
		if e.Call == nil || !strings.HasPrefix(e.Instance, instance+"-") || e.At < began || e.At > ended || e.Call.Injected || !request.IsWork(e.Call) {
			continue
		}
		what := targetOf(e.Call.Target)
		switch {
		case slices.Contains(rejections, e.Call.Code):
			all[what] = attempts{e, all[what].count + 1}
		case e.Call.Code >= 200 && e.Call.Code < 300:
			delete(all, what)
		}
	}
	return all
}

func targetOf(t trace.Target) string {
	name := t.Resource
	if t.Subresource != "" {
		name += "/" + t.Subresource
	}
	if t.Group != "" {
		name += "." + t.Group
	}
	if t.Namespace != "" {
		return name + " " + t.Namespace + "/" + t.Name
	}
	return name + " " + t.Name
}
