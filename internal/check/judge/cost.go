package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/cost"
	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// OverBudget returns the remark about a request that a scenario now needs more often than the budget of
// the project allows.
func OverBudget(scenario string, e cost.Excess) Finding {
	sentence := fmt.Sprintf("without a fault, scenario %s needs %q %d times; its budget is %d", scenario, e.Name, e.Now, e.Budget)
	if e.Budget == 0 {
		sentence = fmt.Sprintf("without a fault, scenario %s needs %q %d times; it is not in the budget", scenario, e.Name, e.Now)
	}
	f := Finding{Verdict: MoreRequests, Scenario: scenario, Sentence: sentence, Request: e.Name, Detail: "koboshi check --update-budget accepts the new numbers of all scenarios"}
	f.ID = f.identity(e.Name)
	return f
}

// ListsWhole returns the remark about a resource that the controller lists again and again.
func ListsWhole(w cost.Whole) Finding {
	from := "of all namespaces"
	if w.Namespace != "" {
		from = "of namespace " + w.Namespace
	}
	f := Finding{
		// The scenario with the most lists depends on the machine, but the resource does not.
		ID:      Finding{Verdict: UnboundedLists}.identity(w.Resource),
		Verdict: UnboundedLists, Scenario: w.Scenario, AlsoIn: w.AlsoIn, Request: "list " + w.Resource,
	}
	f.Sentence = fmt.Sprintf("the controller lists all %s %s directly from the API server %s, in %d of %s of scenario %s, without a limit or a selector",
		w.Resource, from, noun.Count(w.Times, "time"), w.InSteps, noun.Count(w.Steps, "step"), w.Scenario)
	return f
}

// An Event storm is fewestEvents writes of Events about one object, at rest, at a rate of at least
// stormRate per second. client-go's recorder lets 25 writes about an object pass before it drops any
// (tools/record/events_cache.go, defaultSpamBurst), so the number is below that.
const (
	fewestEvents = 10
	stormRate    = 0.5
)

// EventStorms returns the remarks about objects about which the controller keeps recording Events,
// although the world has come to rest after the step with the given index and does not change. until is
// the end of the examined time, measured from the start of the run. Events between which the pauses
// become longer and longer report an error after which the controller tries again.
func EventStorms(run *evidence.Run, i int, until time.Duration, changed bool) (found []Finding) {
	at := run.Steps[i]
	at.Watched = until - at.RestedAt
	if changed || at.Restless || at.Watched <= 0 || missesPods(after(run.Entries, at.RestedAt)) {
		return nil
	}
	writes := map[string][]trace.Entry{}
	for _, e := range after(run.Entries, at.RestedAt) {
		if e.Call == nil || e.Instance == "" || e.At > until || !cost.IsEvent(e.Call) || !succeeded(&e) {
			continue
		}
		if object := regarding(e.Call); object != "" {
			writes[object] = append(writes[object], e)
		}
	}
	for object, all := range writes {
		if len(all) < fewestEvents || float64(len(all)) < stormRate*at.Watched.Seconds() || !steady(all, at) || backsOff(all) {
			continue
		}
		found = append(found, eventStorm(run.Scenario, at, object, all))
	}
	slices.SortFunc(found, func(a, b Finding) int { return strings.Compare(a.ID, b.ID) })
	return found
}

func after(entries []trace.Entry, at time.Duration) []trace.Entry {
	i := slices.IndexFunc(entries, func(e trace.Entry) bool { return e.At > at })
	if i < 0 {
		return nil
	}
	return entries[i:]
}

// regarding returns the kind of the object that an Event is about, and the reason of the Event. Other
// objects of the kind usually get the same Events. A patch only contains what has changed, so the
// answer is read.
func regarding(c *trace.Call) string {
	event, err := c.ResponseObject()
	if err != nil {
		return ""
	}
	about, _ := event["involvedObject"].(map[string]any)
	if about == nil {
		about, _ = event["regarding"].(map[string]any)
	}
	kind, _ := about["kind"].(string)
	name, _ := about["name"].(string)
	reason, _ := event["reason"].(string)
	if kind == "" || name == "" {
		return ""
	}
	return kind + "\x00" + name + "\x00" + reason
}

func eventStorm(scenario string, at evidence.Step, object string, writes []trace.Entry) Finding {
	part := strings.Split(object, "\x00")
	kind, name, reason := part[0], part[1], part[2]
	f := Finding{
		// Every rest shows it, in every scenario.
		ID:      Finding{Verdict: EventStorm}.identity(kind + "\x00" + reason),
		Verdict: EventStorm, Scenario: scenario, Step: at.Name, Request: "Event " + reason + " of " + kind,
	}
	f.Sentence = fmt.Sprintf("the controller writes Events with the reason %s about %s %s %d times in %s, although nothing changes",
		reason, kind, name, len(writes), rounded(at.Watched))
	return f
}
