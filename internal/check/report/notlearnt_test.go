package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScenariosThatAreLeftOutForTheSameReasonAreInOneLine(t *testing.T) {
	r := &Report{NotLearnt: []NotLearnt{{Scenario: "a", Why: "no time"}, {Scenario: "b", Why: "no such kind"}, {Scenario: "c", Why: "no time"}}}
	want := []string{"2 scenarios were left out: no time: a, c", "scenario b was left out: no such kind"}
	if diff := cmp.Diff(want, r.notLearnt()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOfManyScenariosThatAreLeftOutSomeAreNamed(t *testing.T) {
	r := &Report{}
	for i := range 9 {
		r.NotLearnt = append(r.NotLearnt, NotLearnt{Scenario: string(rune('a' + i)), Why: "no time"})
	}
	want := []string{"9 scenarios were left out: no time: a, b, c, d, e, f and 3 more"}
	if diff := cmp.Diff(want, r.notLearnt()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
