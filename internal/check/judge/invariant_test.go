package judge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// ruled returns a scenario with a rule for ConfigMaps.
func ruled(expr string) *scenario.Scenario {
	sc := scene()
	sc.Always = []scenario.Always{{Name: "one leader", Match: scenario.Match{APIVersion: "v1", Kind: "ConfigMap", Name: "child"}, Expr: expr}}
	return sc
}

func leaders(n int) string {
	return fmt.Sprintf(`ConfigMap default/child {"data":{"leaders":"%d"}}`, n)
}

const oneLeader = "object.data.leaders <= '1'"

func TestARuleHoldsInEachRevisionAndNotOnlyAtRest(t *testing.T) {
	for name, tt := range map[string]struct {
		expr  string
		story func(*story)
		want  string
	}{
		"it holds": {oneLeader, func(s *story) { s.puts(one, leaders(0)).puts(one, leaders(1)) }, ""},
		"for a moment it does not": {oneLeader, func(s *story) { s.puts(one, leaders(1)).puts(one, leaders(2)).puts(one, leaders(1)) },
			`even without a fault, ConfigMap default/child breaks the rule "one leader" in revision 103, written by PUT configmaps default/child`},
		"another client breaks it": {oneLeader, func(s *story) { s.puts(one, leaders(1)).puts(driver, leaders(2)).puts(one, leaders(2)) },
			`even without a fault, ConfigMap default/child breaks the rule "one leader" in revision 103, written by another client`},
		"an object of another name": {oneLeader, func(s *story) { s.puts(one, strings.Replace(leaders(2), "child", "other", 1)) }, ""},
		"a transition": {"oldObject == null || object.data.leaders >= oldObject.data.leaders", func(s *story) { s.puts(one, leaders(1)).puts(one, leaders(2)).puts(one, leaders(0)) },
			`even without a fault, ConfigMap default/child breaks the rule "one leader" in revision 104, written by PUT configmaps default/child`},
		"a good transition": {"oldObject == null || object.data.leaders >= oldObject.data.leaders", func(s *story) { s.puts(one, leaders(1)).puts(one, leaders(2)) }, ""},
		"the deletion":      {oneLeader, func(s *story) { s.puts(one, leaders(1)).deletes(one, "ConfigMap default/child") }, ""},
	} {
		var runs []*evidence.Run
		for range 3 {
			s := tell(t)
			s.step("create").puts(driver, widget)
			tt.story(s)
			runs = append(runs, s.end())
		}
		sc := ruled(tt.expr)
		sc.Name = "s"
		r, err := NewReference(sc, runs)
		if err != nil {
			t.Fatal(err)
		}
		var sentences []string
		for _, f := range Faultless(r, runs, nil) {
			if f.Verdict == Invariant {
				sentences = append(sentences, f.Sentence)
				if f.Differences[0].Want != tt.expr {
					t.Errorf("%s: the finding does not show the rule: %+v", name, f.Differences)
				}
			}
		}
		if got := strings.Join(sentences, "\n"); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
		if again := Judge(r, runs[0], nil); len(again) > 0 {
			t.Errorf("%s: a fault is blamed for what happens without it: %v", name, verdicts(again))
		}
	}
}

func TestARuleThatAFaultBreaksIsAFinding(t *testing.T) {
	begin := func(s *story) *story { return s.step("create").puts(driver, widget).puts(one, leaders(1)) }
	r := reference(t, ruled(oneLeader), func(s *story) { begin(s) })
	killed := fault.Fault{Kind: fault.KillLost, Point: fault.Point{Step: "create", Verb: "create", Resource: "configmaps", Object: "default/child"}}
	for name, tt := range map[string]struct {
		fault fault.Fault
		more  func(*story)
		want  string
	}{
		"it holds":                   {killed, func(s *story) { s.puts(two, leaders(0)).puts(two, leaders(1)) }, ""},
		"the new instance breaks it": {killed, func(s *story) { s.puts(two, leaders(2)).puts(two, leaders(1)) }, "INVARIANT"},
		"and the state stays wrong":  {killed, func(s *story) { s.puts(two, leaders(2)).healed(evidence.Never) }, "DIVERGED, INVARIANT"},
		"it breaks later": {killed, func(s *story) {
			s.puts(two, `ConfigMap default/child {"data":{}}`).puts(two, leaders(1)).puts(two, leaders(2)).puts(two, leaders(1))
		}, "INVARIANT"},
		"it cannot be evaluated":      {killed, func(s *story) { s.puts(two, `ConfigMap default/child {"data":{}}`).puts(two, leaders(1)) }, ""},
		"the checker edits the child": {do(fault.EditChild, "create", "ConfigMap/default/child"), func(s *story) { s.puts(driver, leaders(2)).puts(one, leaders(1)) }, ""},
		"the checker edits another child": {do(fault.EditChild, "create", "ConfigMap/default/other"),
			func(s *story) { s.puts(one, leaders(2)).puts(one, leaders(1)) }, ""},
	} {
		s := begin(tell(t))
		tt.more(s)
		found := Judge(r, s.after(tt.fault), nil)
		if got := verdicts(found); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
		for _, f := range found {
			if f.Verdict == Invariant && !strings.Contains(f.Detail, "changed: data.leaders from \"1\" to ") {
				t.Errorf("%s: the changed field is not shown: %s", name, f.Detail)
			}
		}
	}
}

func TestWhatTheCheckerWritesIntoMetadataBreaksNoRule(t *testing.T) {
	marked := `ConfigMap default/child {"metadata":{"annotations":{"check.koboshi.dev/poke":"1"}},"data":{"leaders":"1"}}`
	r := reference(t, ruled("!has(object.metadata.annotations)"), func(s *story) { s.step("create").puts(driver, widget).puts(one, leaders(1)) })
	for who, want := range map[string]bool{driver: false, one: true} {
		s := tell(t)
		s.step("create").puts(driver, widget).puts(one, leaders(1)).puts(who, marked).puts(one, leaders(1))
		if got := verdicts(Judge(r, s.after(do(fault.Conflict, "create", "")), nil)); strings.Contains(got, "INVARIANT") != want {
			t.Errorf("written by %q: %q", who, got)
		}
	}
}

func TestARuleThatCannotBeEvaluatedIsAMistakeInTheScenario(t *testing.T) {
	var runs []*evidence.Run
	for range 3 {
		s := tell(t)
		s.step("create").puts(driver, widget).puts(one, `ConfigMap default/child {"data":{}}`).puts(one, leaders(1))
		runs = append(runs, s.end())
	}
	sc := ruled(oneLeader)
	sc.Name = "s"
	_, err := NewReference(sc, runs)
	if want := `scenario s: always: the rule "one leader" cannot be evaluated for ConfigMap default/child in revision 102: no such key: leaders; test for optional fields with has()`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

func TestARuleSelectsItsObjects(t *testing.T) {
	ref, content := object(t, `Deployment.apps shop/web {"metadata":{"labels":{"app":"web"}}}`)
	for _, tt := range []struct {
		match scenario.Match
		want  bool
	}{
		{scenario.Match{APIVersion: "apps/v1", Kind: "Deployment"}, true},
		{scenario.Match{APIVersion: "apps/v2", Kind: "Deployment", Namespace: "shop", Name: "web", Selector: "app in (web,api)"}, true},
		{scenario.Match{APIVersion: "v1", Kind: "Deployment"}, false},
		{scenario.Match{APIVersion: "apps/v1", Kind: "StatefulSet"}, false},
		{scenario.Match{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default"}, false},
		{scenario.Match{APIVersion: "apps/v1", Kind: "Deployment", Name: "api"}, false},
		{scenario.Match{APIVersion: "apps/v1", Kind: "Deployment", Selector: "app!=web"}, false},
	} {
		if got := tt.match.Selects(ref, content); got != tt.want {
			t.Errorf("%+v: %t", tt.match, got)
		}
	}
}
