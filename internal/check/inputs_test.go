package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// boatTrials are two inputs of one object.
func boatTrials() *scenario.Trials {
	steps := []scenario.Step{{Name: scenario.CreateStep}, {Name: "masts"}, {Name: "undo-masts"}, {Name: "flag"}, {Name: "undo-flag"}}
	return &scenario.Trials{
		Scenario: &scenario.Scenario{Name: "boat-inputs", Steps: steps}, Title: "boat", KindGroup: "Boat.sea.example.com",
		Trials: []scenario.Trial{
			{Field: "spec.masts", Verb: "zero", Value: []byte("0"), Step: "masts", Undo: "undo-masts"},
			{Field: "spec.flag", Verb: "remove", Step: "flag", Undo: "undo-flag"},
		},
	}
}

// triedBoat answers a request to try the inputs of boatTrials, the first of which crashes the controller.
const triedBoat = "\n*'\"try\"'*) echo '{\"tried\":[{\"field\":\"spec.masts\",\"verb\":\"zero\",\"value\":0,\"step\":\"masts\",\"undo\":\"undo-masts\",\"outcome\":\"crashed\"}," +
	"{\"field\":\"spec.flag\",\"verb\":\"remove\",\"step\":\"flag\",\"undo\":\"undo-flag\",\"outcome\":\"effect\"}]}' ;;"

func TestACrashOfAnInputIsConfirmedWithoutLearningItsScenario(t *testing.T) {
	crash := "\n*'\"crash\"'*) echo '{\"lesson\":{\"scenario\":{\"name\":\"boat-input-masts\"},\"runs\":2,\"findings\":[" +
		"{\"id\":\"7\",\"verdict\":\"CRASHED\",\"frame\":\"main.sail\",\"scenario\":\"boat-input-masts\",\"sentence\":\"the controller panics\"}]}}' ;;"
	program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+triedBoat+crash)
	result, err := runIn(t.Context(), t, program, Options{Trials: []*scenario.Trials{boatTrials()}})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if len(r.Findings) != 1 || r.Findings[0].Verdict != judge.Crashed || r.Findings[0].Input != "spec.masts was set to 0" {
		t.Fatalf("the report has %+v, and the notes %q", r.Findings, r.Notes)
	}
	want := []report.Input{
		{Kind: "Boat.sea.example.com", Given: "spec.flag was removed", Outcome: "effect"},
		{Kind: "Boat.sea.example.com", Given: "spec.masts was set to 0", Outcome: "crashed"},
	}
	if diff := cmp.Diff(want, r.Inputs); diff != "" {
		t.Errorf("the inputs in the report, -want +got:\n%s", diff)
	}
}

func TestACrashOfAnInputThatIsNotSeenAgainIsOnlyNoted(t *testing.T) {
	again := "\n*'\"crash\"'*) echo '{\"lesson\":{\"scenario\":{\"name\":\"boat-input-masts\"},\"runs\":1}}' ;;"
	program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+triedBoat+again)
	result, err := runIn(t.Context(), t, program, Options{Trials: []*scenario.Trials{boatTrials()}})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(result.Report.Notes, "\n")
	if len(result.Report.Findings) != 0 || !strings.Contains(notes, "spec.masts was set to 0 of Boat.sea.example.com: the controller panicked or exited, but not when it was tried again") {
		t.Errorf("the report has %+v, and the notes\n%s", result.Report.Findings, notes)
	}
}
