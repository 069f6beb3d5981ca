// Package cost counts what a controller costs the API server: the requests that it sends in the runs
// of a scenario without a fault, and the lists that read a whole resource.
//
//	runs of a scenario ──Of──▶ Usage ──┬─Over───▶ requests above the budget of the project
//	                                   ├─Budget─▶ a new budget
//	                                   └─Again──▶ resources that are listed again and again
//
// Requests that depend on time rather than on the scenario are not counted: watches, the lists with
// which watches begin, everything before the first step, leader election, and the reads of a
// controller that has no watch and therefore polls.
package cost

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Usage summarizes the requests in the runs of one scenario without a fault.
type Usage struct {
	// Requests counts all requests of the controller, ordered by name.
	Requests []Requests `json:"requests,omitempty"`
	// Lists counts the lists of whole resources that belong to no watch, ordered by resource and
	// namespace.
	Lists []Lists `json:"lists,omitempty"`
	// Steps is the number of steps of the scenario, without the start of the controller.
	Steps int `json:"steps,omitempty"`
}

// Requests counts the requests with the same verb and resource.
type Requests struct {
	// Name is the verb and the resource with its group and subresource, such as "get pods" or
	// "update widgets.example.com/status".
	Name string `json:"name"`
	// Least and Most are the smallest and the largest number of requests in one run.
	Least int `json:"least,omitempty"`
	Most  int `json:"most"`
}

// Lists counts the lists of one whole resource, or of a whole resource in one namespace.
type Lists struct {
	// Resource is the resource with its group, such as "pods" or "widgets.example.com". Namespace is
	// empty if the lists were not limited to a namespace.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	// Times is the smallest number of lists in one run, and Steps the smallest number of steps with
	// at least one list.
	Times int `json:"times"`
	Steps int `json:"steps"`
}

// Of summarizes the runs of one scenario.
func Of(runs []*evidence.Run) Usage {
	var all []*tally
	steps := 0
	for _, run := range runs {
		all = append(all, count(run.Entries))
		steps = max(steps, len(run.Steps)-1)
	}
	if len(all) == 0 {
		return Usage{}
	}
	return Usage{Requests: requestsOf(all), Lists: listsOf(all), Steps: max(steps, 0)}
}

func requestsOf(all []*tally) (found []Requests) {
	least, most := map[string]int{}, map[string]int{}
	for name := range namesIn(all, func(t *tally) map[string]int { return t.requests }) {
		for i, t := range all {
			n := t.requests[name]
			most[name] = max(most[name], n)
			if least[name] = min(least[name], n); i == 0 {
				least[name] = n
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(most)) {
		found = append(found, Requests{Name: name, Least: least[name], Most: most[name]})
	}
	return found
}

func listsOf(all []*tally) (found []Lists) {
	for where := range namesIn(all, func(t *tally) map[collection]map[int]int { return t.whole }) {
		l := Lists{Resource: where.resource, Namespace: where.namespace}
		for i, t := range all {
			times := 0
			for _, n := range t.whole[where] {
				times += n
			}
			if i == 0 {
				l.Times, l.Steps = times, len(t.whole[where])
			}
			l.Times, l.Steps = min(l.Times, times), min(l.Steps, len(t.whole[where]))
		}
		if l.Times > 0 {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, func(a, b Lists) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace))
	})
	return found
}

// namesIn returns the keys of a map that occur in any of the tallies.
func namesIn[K comparable, V any](all []*tally, of func(*tally) map[K]V) map[K]bool {
	names := map[K]bool{}
	for _, t := range all {
		for name := range of(t) {
			names[name] = true
		}
	}
	return names
}

// collection identifies the objects that an instance of the controller lists or watches: those of a
// resource, in one namespace or in all of them.
type collection struct{ instance, resource, namespace string }

// tally counts the requests of one run.
type tally struct {
	requests map[string]int
	// whole counts the lists of whole resources by the index of the step.
	whole map[collection]map[int]int
}

// count counts the requests of one run after the start of the controller.
func count(entries []trace.Entry) *tally {
	t := &tally{requests: map[string]int{}, whole: map[collection]map[int]int{}}
	ofWatches, polls := listsOfWatches(entries)
	step := -1
	for i := range entries {
		e := &entries[i]
		if e.Step != nil && e.Step.What == "started" {
			step++
		}
		if step < 1 || !counts(e) || ofWatches[i] || polls && !request.IsWriteVerb(e.Call.Verb) {
			continue
		}
		t.requests[e.Call.Verb+" "+fault.ResourceOf(e.Call)]++
		if !isWhole(e.Call) {
			continue
		}
		where := collectionOf(e)
		where.instance = "" // after a restart, another instance continues
		if t.whole[where] == nil {
			t.whole[where] = map[int]int{}
		}
		t.whole[where][step]++
	}
	return t
}

// counts reports whether an entry is a request that the work of the controller causes. Of the
// bookkeeping, only Events are caused by it. A list that the server refuses is repeated by informers
// for as long as the run takes.
func counts(e *trace.Entry) bool {
	c := e.Call
	switch {
	case c == nil || e.Instance == "" || c.Endpoint != "" || c.Target.Resource == "" || c.Verb == "watch":
		return false
	case c.Verb == "list" && c.Code >= http.StatusBadRequest:
		return false
	case IsEvent(c):
		return true
	}
	return !request.IsBookkeeping(c)
}

// IsEvent reports whether a request writes an Event.
func IsEvent(c *trace.Call) bool {
	t := c.Target
	return c.Endpoint == "" && request.IsWriteVerb(c.Verb) && t.Resource == "events" && (t.Group == "" || t.Group == "events.k8s.io")
}

func collectionOf(e *trace.Entry) collection {
	return collection{e.Instance, fault.ResourceOf(e.Call), e.Call.Target.Namespace}
}

// listsOfWatches returns the indices of the lists with which watches begin. Such a list is followed by
// a watch of the same collection, or a watch continues at the version that the list returned. polls
// reports whether the controller has no watch at all.
func listsOfWatches(entries []trace.Entry) (lists map[int]bool, polls bool) {
	lists, polls = map[int]bool{}, true
	before := map[collection][]int{} // the lists of each collection so far
	for i := range entries {
		e := &entries[i]
		if e.Call == nil || e.Instance == "" || e.Call.Endpoint != "" || request.IsBookkeepingTarget(e.Call.Target) {
			continue
		}
		where := collectionOf(e)
		switch e.Call.Verb {
		case "list":
			before[where] = append(before[where], i)
		case "watch":
			polls = polls && e.Call.Code != http.StatusOK
			from := queryOf(e.Call).Get("resourceVersion")
			for n, at := range before[where] {
				last := n == len(before[where])-1
				lists[at] = lists[at] || last || from != "" && from == entries[at].Call.ResourceVersion
			}
			before[where] = slices.DeleteFunc(before[where], func(at int) bool { return lists[at] })
		}
	}
	return lists, polls
}

// isWhole reports whether a list returns all objects of a resource that may have many. A limit, a
// selector, or a version that lets the server answer from its cache shows that the author has thought
// of its size.
func isWhole(c *trace.Call) bool {
	if c.Verb != "list" || c.Target.Subresource != "" || c.Target.Name != "" || isFew(c) {
		return false
	}
	query := queryOf(c)
	for _, name := range []string{"limit", "continue", "labelSelector", "fieldSelector", "resourceVersion"} {
		if query.Get(name) != "" {
			return false
		}
	}
	return true
}

func queryOf(c *trace.Call) url.Values {
	_, query, _ := strings.Cut(c.Path, "?")
	values, _ := url.ParseQuery(query) // the part that can be parsed is enough
	return values
}

// few lists resources, and few groups of resources, of which even a large cluster has only a few
// objects, because administrators install them.
var few = map[string]bool{
	"namespaces": true, "resourcequotas": true, "limitranges": true, "componentstatuses": true,
	"storageclasses.storage.k8s.io": true, "csidrivers.storage.k8s.io": true, "volumesnapshotclasses.snapshot.storage.k8s.io": true,
	"ingressclasses.networking.k8s.io": true, "gatewayclasses.gateway.networking.k8s.io": true,
	"priorityclasses.scheduling.k8s.io": true, "runtimeclasses.node.k8s.io": true, "deviceclasses.resource.k8s.io": true,
	"customresourcedefinitions.apiextensions.k8s.io": true, "apiservices.apiregistration.k8s.io": true,
}

var fewGroups = map[string]bool{
	"admissionregistration.k8s.io": true, "config.openshift.io": true, "flowcontrol.apiserver.k8s.io": true,
}

func isFew(c *trace.Call) bool { return few[fault.ResourceOf(c)] || fewGroups[c.Target.Group] }
