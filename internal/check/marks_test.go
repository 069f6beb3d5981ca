package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// raftTrials are trials of single fields of another object.
func raftTrials() *scenario.Trials {
	one := boatTrials()
	one.Scenario.Name, one.Title, one.KindGroup = "raft-inputs", "raft", "Raft.sea.example.com"
	return one
}

// markedTrials are trials of the two fields of a boat that are made together.
func markedTrials() *scenario.Trials {
	steps := []scenario.Step{{Name: scenario.CreateStep}, {Name: "mark"}, {Name: "then-mark"}, {Name: "undo-mark"}}
	return &scenario.Trials{
		Scenario: &scenario.Scenario{Name: "boat-marks", Steps: steps}, Title: "boat", KindGroup: "Boat.sea.example.com",
		Trials: []scenario.Trial{
			{Field: "spec.masts", Verb: "zero", Mark: "koboshi-m001", Step: "mark", Then: "then-mark", Undo: "undo-mark"},
			{Field: "spec.flag", Verb: "remove", Mark: "koboshi-m002", Step: "mark", Then: "then-mark", Undo: "undo-mark"},
		},
	}
}

func TestWhatManyFieldsShowTogetherDecidesWhichAreTriedAlone(t *testing.T) {
	for name, of := range map[string]struct {
		masts, flag string
		want        []string // the scenarios of the trials, with their fields
	}{
		"a field without an effect is only confirmed": {"effect", "inert", []string{"boat-marks", "raft-inputs spec.masts spec.flag"}},
		"what is known is not tried again":            {"effect", "effect", []string{"boat-marks", "raft-inputs spec.masts spec.flag"}},
		"an effect that stays is only confirmed":      {"kept", "effect", []string{"boat-marks", "raft-inputs spec.masts spec.flag"}},
		"nothing is known":                            {"unknown", "unknown", []string{"boat-marks", "raft-inputs spec.masts spec.flag", "boat-inputs spec.masts spec.flag"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "asked")
			together := "\n*'\"koboshi-m001\"'*) echo \"$line\" >> " + file + "; echo '{\"tried\":[{\"field\":\"spec.masts\",\"verb\":\"zero\",\"mark\":\"koboshi-m001\",\"outcome\":\"" + of.masts + "\"}," +
				"{\"field\":\"spec.flag\",\"verb\":\"remove\",\"mark\":\"koboshi-m002\",\"outcome\":\"" + of.flag + "\"}]}' ;;"
			both := strings.Replace(strings.ReplaceAll(triedBoat, "crashed", "effect"), "echo", "echo \"$line\" >> "+file+"; echo", 1)
			masts, _, _ := strings.Cut(both, "},{")
			alone := strings.Replace(masts+"}]}' ;;", `"try"`, `[{"field":"spec.masts","verb":"zero","value":0,"step":"masts","undo":"undo-masts"}]`, 1) + both
			confirmed := "\n*'\"kept\"'*) echo '{\"lesson\":{\"scenario\":{\"name\":\"boat-input-masts\"},\"runs\":1}}' ;;"
			program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+confirmed+together+alone)
			result, err := Run(t.Context(), Options{
				Program: program, Dir: t.TempDir(), Workers: 1, Scenarios: scenarios("life"),
				Trials: []*scenario.Trials{markedTrials(), raftTrials(), boatTrials()},
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(of.want, triedScenarios(t, file)); diff != "" {
				t.Errorf("the labs tried, -want +got:\n%s", diff)
			}
			var given []string
			for _, input := range result.Report.Inputs {
				given = append(given, input.Kind+": "+input.Given)
			}
			want := []string{
				"Boat.sea.example.com: spec.flag was removed", "Boat.sea.example.com: spec.masts was set to 0",
				"Raft.sea.example.com: spec.flag was removed", "Raft.sea.example.com: spec.masts was set to 0",
			}
			if diff := cmp.Diff(want, given); diff != "" {
				t.Errorf("each input is listed once, -want +got:\n%s", diff)
			}
		})
	}
}

// triedScenarios returns the scenarios of the requests to try inputs, each with the fields of its trials
// unless they are made together.
func triedScenarios(t *testing.T, file string) (all []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		for _, name := range []string{"boat-marks", "boat-inputs", "raft-inputs"} {
			if !strings.Contains(line, `"name":"`+name+`"`) {
				continue
			}
			for _, field := range []string{"spec.masts", "spec.flag"} {
				if name != "boat-marks" && strings.Contains(line, `"field":"`+field+`"`) {
					name += " " + field
				}
			}
			all = append(all, name)
		}
	}
	return all
}

func TestWhatManyFieldsShowTogetherIsConfirmedTogether(t *testing.T) {
	const tried = `{"field":"spec.masts","outcome":"%s","why":"in a sail"},{"field":"spec.flag","outcome":"%s"}`
	finding := `{"id":"7","verdict":"PATH DEPENDENT","scenario":"boat-marks","step":"undo-mark","input":"spec.flag was set to ",` +
		`"sentence":"a label stays","differences":[{"object":"Sail a","path":"spec.size"}]}`
	for name, of := range map[string]struct {
		first, again [2]any
		findings     string
		remarks      []string
		note         string
	}{
		"one text stays again": {[2]any{"kept", "kept"}, [2]any{"effect", "kept"}, finding, []string{"PATH DEPENDENT"},
			"Boat.sea.example.com: spec.masts was set to 0: the change back did not undo everything (in a sail), but not when it was tried again"},
		"a text is missing again, and another one arrives": {[2]any{"effect", "inert"}, [2]any{"effect", "inert"}, "", []string{"INERT FIELD"}, ""},
		"a text is missing again, but so are all":          {[2]any{"effect", "inert"}, [2]any{"inert", "inert"}, "", nil, "1 field seemed to have no effect, but this could not be confirmed: spec.flag of Boat.sea.example.com"},
		"a text is not missing any more":                   {[2]any{"effect", "inert"}, [2]any{"effect", "effect"}, "", nil, "1 field seemed to have no effect, but this could not be confirmed: spec.flag of Boat.sea.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+
				"\n*'\"kept\"'*'\"koboshi-m001\"'*'\"patient\":[\"undo-mark\"]'*) echo '{\"lesson\":{\"scenario\":{\"name\":\"boat-marks\"},\"runs\":1,\"tried\":["+
				fmt.Sprintf(tried, of.again[:]...)+"],\"findings\":["+of.findings+"]}}' ;;"+
				"\n*'\"koboshi-m001\"'*) echo '{\"tried\":["+fmt.Sprintf(tried, of.first[:]...)+"]}' ;;"+
				"\n*'\"kept\"'*) echo '{\"error\":\"a field was tried alone\"}' ;;")
			marks, alone := markedTrials(), boatTrials()
			marks.Trials[1].Verb, alone.Trials[1].Verb = "add", "add"
			result, err := runIn(t.Context(), t, program, Options{Trials: []*scenario.Trials{marks, alone}})
			if err != nil {
				t.Fatal(err)
			}
			var remarks []string
			for _, f := range result.Report.Remarks {
				remarks = append(remarks, string(f.Verdict))
			}
			if diff := cmp.Diff(of.remarks, remarks); diff != "" {
				t.Errorf("remarks, -want +got:\n%s", diff)
			}
			if of.note != "" && !slices.Contains(result.Report.Notes, of.note) {
				t.Errorf("the notes are %q, want also %q", result.Report.Notes, of.note)
			}
			if result.Scenarios["boat-marks"] == nil {
				t.Error("the report names a scenario that is not there")
			}
		})
	}
}

func TestASlowControllerGetsTimeForItsRounds(t *testing.T) {
	c := newCheck(Options{})
	tr := &trial{check: c, end: time.Now().Add(time.Second)}
	for took, slow := range map[time.Duration]bool{8 * time.Second: false, 40 * time.Second: true} {
		c.lessons["life"] = &fleet.Lesson{Lesson: &lab.Lesson{Took: took, Scenario: &scenario.Scenario{Steps: make([]scenario.Step, 4)}}}
		of, marks := boatTrials(), markedTrials()
		if got := tr.paced(marks, time.Minute); slices.Equal(got.Patient, []string{"mark", "then-mark", "undo-mark"}) != slow || (got.Scenario.Steps[1].Quiet > 0) == slow {
			t.Errorf("with steps of %s, labels are patient in %q, and wait %s", took/4, got.Patient, got.Scenario.Steps[1].Quiet)
		}
		if got := tr.provenLast(of).Patient; (len(got) > 0) != slow || slow && got[0] != of.Trials[len(of.Trials)-1].Step {
			t.Errorf("with steps of %s, these are patient: %q", took/4, got)
		}
		if got := tr.forIdle() > time.Second; got != slow {
			t.Errorf("with steps of %s, fields without an effect get more time: %t", took/4, got)
		}
	}
}

func TestWhatWasNotConfirmedIsNamed(t *testing.T) {
	field := func(name string, outcome inputs.Outcome) triedInput {
		return triedInput{Tried: inputs.Tried{Trial: scenario.Trial{Field: name}, Outcome: outcome}}
	}
	labels, annotations, tags := field("spec.labels", inputs.Kept), field("spec.annotations", inputs.Kept), field("spec.tags", inputs.Inert)
	for want, fields := range map[string][]triedInput{
		"Boat.sea.example.com: after the change back, something stayed of spec.labels, spec.annotations, and why":                 {labels, annotations},
		"Boat.sea.example.com: there was no effect of spec.tags, and why":                                                         {tags},
		"Boat.sea.example.com: after the change back, something stayed of spec.labels; there was no effect of spec.tags, and why": {labels, tags},
	} {
		if got := unrepeated(boatTrials(), fields, "why"); got != want {
			t.Errorf("the note is %q, want %q", got, want)
		}
	}
}
