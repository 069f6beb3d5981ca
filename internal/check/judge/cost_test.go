package judge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/cost"
	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestARemarkAboutRequestsNamesTheScenarioTheRequestAndBothNumbers(t *testing.T) {
	f := OverBudget("web-life", cost.Excess{Name: "get pods", Budget: 14, Now: 40})
	if want := `without a fault, scenario web-life needs "get pods" 40 times; its budget is 14`; f.Sentence != want || f.Scenario != "web-life" || f.Request != "get pods" || !f.Verdict.IsRemark() {
		t.Errorf("%+v\nwant %s", f, want)
	}
	if f := OverBudget("web-life", cost.Excess{Name: "get pods", Now: 40}); !strings.HasSuffix(f.Sentence, "40 times; it is not in the budget") {
		t.Error(f.Sentence)
	}
	if other := OverBudget("web-life", cost.Excess{Name: "get pods", Budget: 15, Now: 41}); other.ID != f.ID {
		t.Error("other numbers make another finding")
	}
	if other := OverBudget("web-life", cost.Excess{Name: "get nodes", Budget: 14, Now: 40}); other.ID == f.ID {
		t.Error("another request is the same finding")
	}
}

func TestARemarkAboutListsNamesTheResourceAndTheSteps(t *testing.T) {
	f := ListsWhole(cost.Whole{Resource: "pods", Namespace: "default", Scenario: "web-life", Times: 12, InSteps: 3, Steps: 4, AlsoIn: []string{"web-again"}})
	if want := "the controller lists all pods of namespace default directly from the API server 12 times, in 3 of 4 steps of scenario web-life, without a limit or a selector"; f.Sentence != want || !f.Verdict.IsRemark() {
		t.Errorf("%s\nwant %s", f.Sentence, want)
	}
	other := ListsWhole(cost.Whole{Resource: "pods", Scenario: "web-again", Times: 20, InSteps: 4, Steps: 4})
	if !strings.Contains(other.Sentence, "all pods of all namespaces") || other.ID != f.ID {
		t.Errorf("%s, %s and %s", other.Sentence, other.ID, f.ID)
	}
}

// events returns a run that was watched for 15 s after its first 5 s, with writes of Events at the
// given times. Each write gets the answer.
func events(times []time.Duration, answer func(i int) string) *evidence.Run {
	run := &evidence.Run{Scenario: "s", Steps: []evidence.Step{{Name: "create", RestedAt: 5 * time.Second}}}
	for i, at := range times {
		run.Entries = append(run.Entries, trace.Entry{Seq: int64(i + 1), At: at, Instance: one, Call: &trace.Call{
			Verb: "patch", Code: 200, Target: trace.Target{Resource: "events", Namespace: "default", Name: "e"}, Response: json.RawMessage(answer(i)),
		}})
	}
	return run
}

func about(name, reason string) string {
	return fmt.Sprintf(`{"kind":"Event","involvedObject":{"kind":"Boat","name":%q},"reason":%q}`, name, reason)
}

func every(pause time.Duration, n int) (times []time.Duration) {
	for i := range n {
		times = append(times, 5*time.Second+time.Duration(i+1)*pause)
	}
	return times
}

func TestOnlySteadyEventsAboutOneObjectAtRestAreAStorm(t *testing.T) {
	same := func(int) string { return about("a", "Synced") }
	var slower []time.Duration
	for i, pause := 0, time.Duration(0); i < 12; i++ {
		pause += pause/2 + 60*time.Millisecond
		slower = append(slower, 5*time.Second+pause)
	}
	for name, tt := range map[string]struct {
		run     *evidence.Run
		changed bool
		want    bool
	}{
		"every second":                         {events(every(time.Second, 14), same), false, true},
		"with the newer API":                   {events(every(time.Second, 14), func(int) string { return strings.Replace(same(0), "involvedObject", "regarding", 1) }), false, true},
		"while something changes":              {events(every(time.Second, 14), same), true, false},
		"every three seconds":                  {events(every(3*time.Second, 4), same), false, false},
		"only at first":                        {events(every(300*time.Millisecond, 20), same), false, false},
		"more and more slowly":                 {events(slower, same), false, false},
		"about many objects":                   {events(every(time.Second, 14), func(i int) string { return about(fmt.Sprint(i), "Synced") }), false, false},
		"with many reasons":                    {events(every(time.Second, 14), func(i int) string { return about("a", fmt.Sprint(i)) }), false, false},
		"that name nothing":                    {events(every(time.Second, 14), func(int) string { return `{}` }), false, false},
		"before the rest":                      {events(every(-300*time.Millisecond, 14), same), false, false},
		"after the end of the observed time":   {events(every(2*time.Second, 14)[6:], same), false, false},
		"in a step that did not come to rest":  {unsettled(events(every(time.Second, 14), same)), false, false},
		"that the server refuses":              {answered(events(every(time.Second, 14), same), 403), false, false},
		"while Pods cannot be reached":         {withoutPods(events(every(time.Second, 14), same)), false, false},
		"two seconds apart, which is too slow": {events(every(2*time.Second, 7), same), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			found := EventStorms(tt.run, 0, 20*time.Second, tt.changed)
			if (len(found) == 1) != tt.want {
				t.Fatalf("found %+v", found)
			}
			if want := "the controller writes Events with the reason Synced about Boat a 14 times in 15s, although nothing changes"; tt.want && found[0].Sentence != want {
				t.Errorf("%s\nwant %s", found[0].Sentence, want)
			}
		})
	}
}

func unsettled(run *evidence.Run) *evidence.Run {
	run.Steps[0].Restless = true
	return run
}

func answered(run *evidence.Run, code int) *evidence.Run {
	for _, e := range run.Entries {
		e.Call.Code = code
	}
	return run
}

func withoutPods(run *evidence.Run) *evidence.Run {
	run.Entries = append(run.Entries, trace.Entry{At: 6 * time.Second, Instance: one, Call: &trace.Call{
		Verb: "create", Code: 500, Target: trace.Target{Resource: "pods", Subresource: "exec", Name: "a"},
	}})
	return run
}

func TestTheSameEventsOfAnotherObjectAreTheSameStorm(t *testing.T) {
	first := EventStorms(events(every(time.Second, 14), func(int) string { return about("a", "Synced") }), 0, 20*time.Second, false)
	second := EventStorms(events(every(time.Second, 14), func(int) string { return about("b", "Synced") }), 0, 20*time.Second, false)
	if len(first) != 1 || len(second) != 1 || first[0].ID != second[0].ID {
		t.Errorf("%+v and %+v", first, second)
	}
}
