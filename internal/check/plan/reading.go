package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// reading is the analyzed reference run: each request with its point and its effect.
type reading struct {
	run      *evidence.Run
	facts    *fault.Facts
	requests []asked // in the order of arrival
	steps    []step
	types    map[schema.GroupKind]string // "deployments.apps"
	managers map[string]bool             // the controller's field managers
	made     map[state.Ref]*trace.Call   // the request that created the object; nil if a primary resource only controls it
	counts   []map[fault.Point]int       // the number of requests at each point, for each other reference run
}

// asked is one request of the controller.
type asked struct {
	call    *trace.Call
	point   fault.Point // with Occurrence
	arrived time.Duration
	resting bool
	write   bool
	// change is the index of the write's commit in the history, or -1 if the commit is
	// unknown. idle is the reason why the write changed nothing.
	change int
	idle   string
	// unsteady reports whether the request is missing from some reference runs.
	unsteady bool
}

// step is a step of the run, with its part of the history.
type step struct {
	evidence.Step
	say  *scenario.Step // nil if the scenario does not define it
	from int            // index of the first change after the step began
	to   int            // index after the last change before the step came to rest
}

// read analyzes the reference run.
func read(in Input) *reading {
	r := &reading{run: in.Reference, types: typesOf(in), managers: map[string]bool{}, made: map[state.Ref]*trace.Call{}}
	r.facts = fault.FactsOf(in.Reference.Entries, in.Canonical, in.Change)
	r.facts.OldServer = in.OldServer
	r.facts.Election = in.Subject != nil && len(in.Subject.Election) > 0
	if in.Subject != nil && in.Subject.Webhook.Port > 0 && len(in.Subject.Webhooks) > 0 {
		r.facts.Reviewed = in.Subject.Reviewed
	}
	r.steps = stepsOf(in)
	r.requests = requestsOf(in.Reference, in)
	for _, other := range in.All {
		if other != in.Reference {
			r.counts = append(r.counts, countsOf(other, in))
		}
	}
	r.steady()
	r.effects()
	r.children(in)
	return r
}

// requestsOf numbers the requests of a run in the order of arrival, as a Matcher does.
func requestsOf(run *evidence.Run, in Input) []asked {
	var all []asked
	for at := range fault.Calls(run.Entries) {
		call := at.Entry.Call
		all = append(all, asked{
			call: call, resting: at.Resting, write: request.IsWrite(call), change: -1,
			arrived: at.Entry.At - call.Took,
			point:   fault.PointOf(call, at.Step, in.Canonical, in.Change),
		})
	}
	slices.SortStableFunc(all, func(a, b asked) int {
		return cmp.Or(cmp.Compare(a.arrived, b.arrived), cmp.Compare(a.call.ID, b.call.ID))
	})
	seen := map[fault.Point]int{}
	for i := range all {
		p := &all[i].point
		seen[*p]++
		p.Occurrence = seen[*p]
	}
	return all
}

// countsOf counts the requests of a run by point, both with and without Change.
func countsOf(run *evidence.Run, in Input) map[fault.Point]int {
	counts := map[fault.Point]int{}
	for at := range fault.Calls(run.Entries) {
		p := fault.PointOf(at.Entry.Call, at.Step, in.Canonical, in.Change)
		counts[p]++
		if p.Change != "" {
			p.Change = ""
			counts[p]++
		}
	}
	return counts
}

// steady finds the points that exist in all reference runs, because a run for a point that
// is never reached would be wasted. A write whose body differs each time is identified
// without its body, so that its point can be reached.
func (r *reading) steady() {
	loose := map[fault.Point]int{}
	for i := range r.requests {
		q := &r.requests[i]
		wide := q.point
		wide.Change, wide.Occurrence = "", 0
		loose[wide]++
		if r.everywhere(q.point) {
			continue
		}
		wide.Occurrence = loose[wide]
		if q.point.Change != "" && r.everywhere(wide) {
			q.point = wide
			continue
		}
		q.unsteady = true
	}
}

// everywhere reports whether the point exists in every other reference run, too.
func (r *reading) everywhere(p fault.Point) bool {
	n := p.Occurrence
	p.Occurrence = 0
	for _, counts := range r.counts {
		if counts[p] < n {
			return false
		}
	}
	return true
}

// stepsOf joins each step of the run with its definition in the scenario and its commits.
func stepsOf(in Input) []step {
	said := map[string]*scenario.Step{}
	for i := range in.Scenario.Steps {
		said[in.Scenario.Steps[i].Name] = &in.Scenario.Steps[i]
	}
	changes := in.Reference.History.Changes
	upTo := func(revision int64) int {
		n, _ := slices.BinarySearchFunc(changes, revision+1, func(c state.Change, want int64) int {
			return cmp.Compare(c.Revision, want)
		})
		return n
	}
	var steps []step
	for _, s := range in.Reference.Steps {
		steps = append(steps, step{Step: s, say: said[s.Name], from: upTo(s.Began), to: upTo(s.Rested)})
	}
	return steps
}

// changes returns the commits of a step.
func (r *reading) changes(s step) []state.Change {
	return r.run.History.Changes[s.from:max(s.from, s.to)]
}

// typesOf maps kinds to their names in URLs, which it takes from the installed CRDs and
// from answers. typeOf guesses the names of other kinds, as upstream does.
func typesOf(in Input) map[schema.GroupKind]string {
	types := map[schema.GroupKind]string{}
	known := map[string]bool{}
	for at := range fault.Calls(in.Reference.Entries) {
		call := at.Entry.Call
		typ := fault.TypeOf(call.Target)
		if typ == "" || known[typ] || call.Target.Subresource != "" || call.Verb == "list" || call.Verb == "watch" {
			continue
		}
		body, err := call.ResponseObject()
		if kind, _ := body["kind"].(string); err == nil && kind != "" && kind != "Status" {
			known[typ] = true
			types[schema.GroupKind{Group: call.Target.Group, Kind: kind}] = typ
		}
	}
	if in.Subject == nil {
		return types
	}
	for _, o := range in.Subject.Install {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural")
		types[schema.GroupKind{Group: group, Kind: kind}] = plural + "." + group
	}
	return types
}

// typeOf returns the name of a kind in URLs.
func (r *reading) typeOf(gk schema.GroupKind) string {
	if typ, ok := r.types[gk]; ok {
		return typ
	}
	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	return strings.TrimSuffix(plural.Resource+"."+gk.Group, ".")
}
