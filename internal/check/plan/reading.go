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

// reading is the analysed reference run: each request with its point and its effect.
type reading struct {
	run      *evidence.Run
	facts    *fault.Facts
	requests []asked // in the order of arrival
	steps    []step
	types    map[schema.GroupKind]string // "deployments.apps"
	managers map[string]bool             // the controller's field managers
	made     map[state.Ref]*trace.Call   // what it created; nil if it only owns the object
	counts   []map[fault.Point]int       // of the other reference runs
}

// asked is one request of the controller.
type asked struct {
	call    *trace.Call
	point   fault.Point // with Occurrence
	arrived time.Duration
	resting bool
	write   bool
	// change is the index of the write's commit in the history, -1 if it is unknown;
	// idle is why it did nothing.
	change int
	idle   string
	// unsteady reports whether some reference runs lack it.
	unsteady bool
}

// step is a step of the scenario with its part of the history.
type step struct {
	evidence.Step
	say  *scenario.Step // nil if the scenario does not define it
	from int            // Changes[from:to] were committed between the beginning
	to   int            // and the rest
}

// read analyses the reference run.
func read(in Input) *reading {
	r := &reading{run: in.Reference, types: typesOf(in), managers: map[string]bool{}, made: map[state.Ref]*trace.Call{}}
	r.facts = fault.FactsOf(in.Reference.Entries, in.Canonical, in.Change)
	r.facts.OldServer = in.OldServer
	r.facts.Election = in.Subject != nil && len(in.Subject.Election) > 0
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

// requestsOf numbers the requests of a run by arrival, as a Matcher does.
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

// countsOf counts the requests of a run by point, with and without Change.
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

// steady finds the points that all reference runs have. A write whose body differs each
// time is identified without it: a run for a point that never comes would be wasted.
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

// everywhere reports whether every other reference run has the point, too.
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

// stepsOf joins each step with its definition in the scenario and its commits.
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

// typesOf learns the names of kinds in URLs, from the installed CRDs and from answers.
// Other names are guessed, as upstream does.
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
