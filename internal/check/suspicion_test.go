package check

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestFindingsWithTheSameSymptomAreAlike(t *testing.T) {
	base := diverged("ConfigMap default/a")
	byAnother := base
	byAnother.Fault, byAnother.Step, byAnother.Sentence = &fault.Fault{Kind: fault.Conflict}, "grow", "something else"
	otherValue := diverged("ConfigMap default/a")
	otherValue.Differences = []state.Difference{{Object: "ConfigMap default/a", Got: "3"}}
	for name, f := range map[string]judge.Finding{"by another fault": byAnother, "with another value": otherValue} {
		if likeness(f) != likeness(base) {
			t.Errorf("a finding %s does not count as the same", name)
		}
	}
	otherVerdict := base
	otherVerdict.Verdict = judge.Leak
	otherField := base
	otherField.Differences = []state.Difference{{Object: "ConfigMap default/a", Path: "data"}}
	for name, f := range map[string]judge.Finding{
		"with another verdict": otherVerdict, "of another object": diverged("ConfigMap default/b"), "of another field": otherField,
	} {
		if likeness(f) == likeness(base) {
			t.Errorf("a finding %s counts as the same", name)
		}
	}
}

func TestWithoutDifferencesFindingsAreAlikeInOneStepOnly(t *testing.T) {
	a := judge.Finding{Verdict: judge.Crashed, Scenario: "life", Step: "create"}
	b := a
	b.Step = "grow"
	if likeness(a) == likeness(b) {
		t.Error("crashes in two steps count as the same")
	}
}

func TestSuspicionWaitsForASimilarOne(t *testing.T) {
	s := &suspicions{outcome: newOutcome(Options{}), enough: func() {}}
	f := diverged("a")
	key := likeness(f)
	if !s.first(key, suspicion{finding: f}) {
		t.Fatal("the first is not pursued")
	}
	for _, object := range []string{"one", "two"} {
		if s.first(key, suspicion{planned: at(fault.KillLost, object), finding: f}) {
			t.Fatalf("%s is pursued at the same time as the first", object)
		}
	}
	next, mine := s.next(key) // the first was not confirmed
	if !mine || next.planned.Fault.Point.Object != "one" {
		t.Fatalf("the next suspicion is %v, %t", next.planned, mine)
	}
	s.keep(key, next.finding, nil)
	if s.first(key, suspicion{finding: f}) {
		t.Error("a confirmed suspicion is pursued again")
	}
	if len(s.found) != 1 || s.found[0].AlsoBy != 2 {
		t.Errorf("found %+v; two others showed it", s.found)
	}
}

func TestUnconfirmedSuspicionIsForgotten(t *testing.T) {
	s := &suspicions{outcome: newOutcome(Options{})}
	f := diverged("a")
	s.first(likeness(f), suspicion{finding: f})
	if _, mine := s.next(likeness(f)); mine {
		t.Fatal("there is another suspicion")
	}
	if !s.first(likeness(f), suspicion{finding: f}) {
		t.Error("a later suspicion is not pursued")
	}
}

func TestAFindingThatAnotherClientCausedDoesNotHideTheSameOneAfterAFailedRequest(t *testing.T) {
	meddled, failed := diverged("Secret default/record"), diverged("Secret default/record")
	meddled.Fault, failed.Fault = &fault.Fault{Kind: fault.DeleteChild}, &fault.Fault{Kind: fault.Error500}
	if likeness(meddled) == likeness(failed) {
		t.Error("they count as the same")
	}
	if symptom(meddled) != symptom(failed) {
		t.Error("a control run with the same symptom would not count")
	}
}

func TestMetadataOfAKindThatStaysChangedIsOneFinding(t *testing.T) {
	of := func(verdict judge.Verdict, target, field string) judge.Finding {
		f := diverged(target)
		f.Verdict, f.Fault = verdict, &fault.Fault{Kind: fault.EditChild, Target: target, Field: field}
		return f
	}
	first := of(judge.NotRestored, "Service/default/a", fault.Owners)
	if likeness(of(judge.NotRestored, "Service/default/b", fault.Owners)) != likeness(first) {
		t.Error("the owners of two Services are two findings")
	}
	for name, other := range map[string]judge.Finding{
		"another kind": of(judge.NotRestored, "Secret/default/a", fault.Owners), "another field": of(judge.NotRestored, "Service/default/a", fault.Labels),
		"another verdict": of(judge.Diverged, "Service/default/a", fault.Owners),
	} {
		if likeness(other) == likeness(first) {
			t.Errorf("%s counts as the same", name)
		}
	}
	if data := of(judge.NotRestored, "Service/default/a", "data"); likeness(data) == likeness(of(judge.NotRestored, "Service/default/b", "data")) {
		t.Error("the contents of two Services are one finding")
	}
}

func TestAChangeOfAnotherClientThatStaysIsConfirmedWithoutControlRuns(t *testing.T) {
	for verdict, controlled := range map[judge.Verdict]bool{judge.NotRestored: false, judge.Diverged: true} {
		asked := filepath.Join(t.TempDir(), "asked")
		finding := `{"id":"1","verdict":"` + string(verdict) + `","scenario":"life","step":"create","differences":[{"object":"Service default/a"}]}`
		program := shellLab(t, learns(t, at(fault.EditChild, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{\"findings\":["+finding+"]}}' ;;"+
			"\n*'\"control\"'*) echo >> "+asked+"; echo '{\"knocked\":{}}' ;;")
		result, err := runIn(t.Context(), t, program, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if all := slices.Concat(result.Report.Findings, result.Report.Remarks); len(all) != 1 || all[0].Reproduced != wanted {
			t.Errorf("%s: the findings and remarks are %+v", verdict, all)
		}
		if data, _ := os.ReadFile(asked); (len(data) > 0) != controlled {
			t.Errorf("%s: there were %d control runs", verdict, len(data))
		}
	}
}
