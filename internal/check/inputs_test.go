package check

import (
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
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

func TestAnEffectThatIsNotUndoneIsConfirmedWithoutLearningItsScenario(t *testing.T) {
	kept := "\n*'\"kept\"'*) echo '{\"lesson\":{\"scenario\":{\"name\":\"boat-input-masts\"},\"runs\":3,\"findings\":[" +
		"{\"id\":\"7\",\"verdict\":\"PATH DEPENDENT\",\"scenario\":\"boat-input-masts\",\"step\":\"undo-masts\",\"sentence\":\"a sail stays\"," +
		"\"differences\":[{\"object\":\"Sail a\",\"path\":\"spec.size\"}]}]}}' ;;"
	tried := strings.ReplaceAll(triedBoat, "crashed", "kept")
	program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+tried+kept)
	result, err := runIn(t.Context(), t, program, Options{Trials: []*scenario.Trials{boatTrials()}})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if len(r.Remarks) != 1 || r.Remarks[0].Verdict != judge.PathDependent || r.Remarks[0].Input != "spec.masts was set to 0" || r.Remarks[0].Attempts != 3 {
		t.Errorf("the remarks are %+v, and the notes %q", r.Remarks, r.Notes)
	}
}

func TestOnlyStepsBeforeTheInputPrecedeIt(t *testing.T) {
	sc := &scenario.Scenario{Steps: []scenario.Step{{Name: "create"}, {Name: "masts"}, {Name: "delete-changed"}}}
	for step, want := range map[string]bool{"create": true, "masts": false, "delete-changed": false, "": false, "started": false} {
		if got := precedes(sc, step, "masts"); got != want {
			t.Errorf("%q: %v", step, got)
		}
	}
}

func TestAnObservedGenerationAloneIsNoEffectThatStays(t *testing.T) {
	lag := state.Difference{Path: "status.observedGeneration"}
	for name, of := range map[string]struct {
		f    judge.Finding
		lags bool
	}{
		"only the generation": {judge.Finding{Verdict: judge.PathDependent, Differences: []state.Difference{lag}}, true},
		"and a field":         {judge.Finding{Verdict: judge.PathDependent, Differences: []state.Difference{lag, {Path: "spec.size"}}}, false},
		"another verdict":     {judge.Finding{Verdict: judge.Crashed}, false},
	} {
		if got := onlyLags(of.f); got != of.lags {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestACrashBeforeTheInputIsNotBlamedOnIt(t *testing.T) {
	crash := "\n*'\"crash\"'*) echo '{\"lesson\":{\"scenario\":{\"name\":\"boat-input-masts\",\"steps\":[{\"name\":\"delete\"},{\"name\":\"masts\"}]},\"runs\":2,\"findings\":[" +
		"{\"id\":\"7\",\"verdict\":\"CRASHED\",\"frame\":\"main.sail\",\"scenario\":\"boat-input-masts\",\"step\":\"delete\",\"sentence\":\"the controller panics\"}]}}' ;;"
	program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+triedBoat+crash)
	result, err := runIn(t.Context(), t, program, Options{Trials: []*scenario.Trials{boatTrials()}})
	if err != nil {
		t.Fatal(err)
	}
	if r := result.Report; len(r.Findings) != 1 || r.Findings[0].Input != "" {
		t.Errorf("the report has %+v", r.Findings)
	}
}

// askedFor returns the commands that a lab received, in their order.
func askedFor(t *testing.T, file string) (commands []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		for _, command := range []string{"learn", "try", "crash", "knock"} {
			if strings.Contains(line, `"`+command+`":`) {
				commands = append(commands, command)
			}
		}
	}
	return commands
}

func TestInputsAreTriedAfterTheFirstScenario(t *testing.T) {
	file := filepath.Join(t.TempDir(), "asked")
	effects := strings.ReplaceAll(triedBoat, "crashed", "effect")
	program := shellLab(t, "*) echo \"$line\" >> "+file+"\ncase \"$line\" in\n"+learns(t, at(fault.KillLost, "a"))+
		"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+effects+"\n*) echo '{}' ;;\nesac ;;")
	o := Options{Program: program, Dir: t.TempDir(), Workers: 1, Trials: []*scenario.Trials{boatTrials()}, Scenarios: scenarios("life", "again")}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := askedFor(t, file); len(got) < 3 || !slices.Equal(got[:3], []string{"learn", "try", "learn"}) {
		t.Errorf("the lab was asked to %q", got)
	}
}

func TestAControllerThatDoesNothingIsNotAskedForItsReaction(t *testing.T) {
	c := newCheck(Options{})
	c.lessons["life"] = &fleet.Lesson{Lesson: &lab.Lesson{}}
	if c.mayReact() {
		t.Error("it wrote nothing in the first scenario")
	}
	c.lessons["again"] = &fleet.Lesson{Lesson: &lab.Lesson{Writes: 1}}
	if !c.mayReact() {
		t.Error("it wrote something in the second scenario")
	}
	if c := newCheck(Options{}); !c.mayReact() {
		t.Error("no scenario was learnt, so nothing is known")
	}
	c = newCheck(Options{})
	if c.neverUp = true; c.mayReact() {
		t.Error("it never started")
	}
}

func TestWhatInputsShowIsReportedEvenIfNoScenarioCouldBeLearnt(t *testing.T) {
	crash := "\n*'\"crash\"'*) echo '{\"lesson\":{\"scenario\":{\"name\":\"boat-input-masts\"},\"runs\":2,\"findings\":[" +
		"{\"id\":\"7\",\"verdict\":\"CRASHED\",\"frame\":\"main.sail\",\"scenario\":\"boat-input-masts\",\"sentence\":\"the controller panics\"}]}}' ;;"
	program := shellLab(t, "*'\"learn\"'*) echo '{\"error\":{\"message\":\"step create took too long\"}}' ;;"+triedBoat+crash)
	result, err := runIn(t.Context(), t, program, Options{Trials: []*scenario.Trials{boatTrials()}})
	if err != nil {
		t.Fatal(err)
	}
	if r := result.Report; len(r.Findings) != 1 || r.ExitCode() != 1 || r.Stopped != "no scenario could be run without a fault" || len(r.NotLearnt) != 1 {
		t.Errorf("the report is %+v", r)
	}
}

func TestWhatInputsShowIsReportedEvenIfTheBudgetEndsBeforeAScenarioIsLearnt(t *testing.T) {
	c := newCheck(Options{Budget: time.Minute, Scenarios: scenarios("life")})
	c.result.Report.Inputs = []report.Input{{Given: "spec.masts was removed", Outcome: string(inputs.Unknown)}}
	if _, err := c.ended(t.Context(), errBudget); err == nil {
		t.Error("nothing is known")
	}
	c.result.Report.Inputs = append(c.result.Report.Inputs, report.Input{Given: "spec.flag was removed", Outcome: string(inputs.Effect)})
	result, err := c.ended(t.Context(), errBudget)
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if r.ExitCode() != 2 || r.Stopped != "the budget was used up before a scenario was run without a fault" || len(r.NotLearnt) != 1 {
		t.Errorf("the exit code is %d, and the report %+v", r.ExitCode(), r)
	}
}

func TestTheTimeForInputsIsNoTimeForLearning(t *testing.T) {
	c := newCheck(Options{Budget: time.Hour})
	c.lessons["life"] = &fleet.Lesson{Lesson: &lab.Lesson{}}
	c.began = c.began.Add(-35 * time.Minute)
	sc := scenarios("again")[0]
	if !c.learntEnough(sc) {
		t.Error("learning may take more than half of the budget")
	}
	if c.triedFor = 30 * time.Minute; c.learntEnough(sc) {
		t.Error("the time for inputs counts as time for learning")
	}
	if c.triedFor = 10 * time.Minute; !c.learntEnough(sc) {
		t.Error("learning may take more than half of what the inputs have left")
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
	if len(result.Report.Findings) != 0 || !strings.Contains(notes, "Boat.sea.example.com: spec.masts was set to 0: the controller panicked or exited, but not when it was tried again") {
		t.Errorf("the report has %+v, and the notes\n%s", result.Report.Findings, notes)
	}
}

func TestInputsAreTriedOnceMoreIfTheObjectItselfDidNotComeToRest(t *testing.T) {
	const why = "the controller did not come to rest in step create (it keeps writing)"
	trial := func(field, outcome string) string {
		return `{"field":"spec.` + field + `","verb":"change","value":0,"step":"` + field + `","undo":"undo-` + field + `",` + outcome + `}`
	}
	answer := func(outcome string) string {
		return `{"tried":[` + trial("masts", outcome) + "," + trial("flag", outcome) + `]}`
	}
	restless, effect := answer(`"outcome":"unknown","why":"`+why+`"`), answer(`"outcome":"effect"`)
	for name, of := range map[string]struct {
		then, outcome string
		notes         int
	}{
		"it comes to rest the second time": {effect, "effect", 0},
		"it never comes to rest":           {restless, "unknown", 1},
	} {
		began := filepath.Join(t.TempDir(), "began")
		try := "\n*'\"try\"'*) if test -e " + began + "; then echo '" + of.then + "'; else touch " + began + "; echo '" + restless + "'; fi ;;"
		program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+try)
		result, err := runIn(t.Context(), t, program, Options{Trials: []*scenario.Trials{boatTrials()}})
		if err != nil {
			t.Fatal(err)
		}
		for _, input := range result.Report.Inputs {
			if input.Outcome != of.outcome {
				t.Errorf("%s: %s: %s, want %s", name, input.Given, input.Outcome, of.outcome)
			}
		}
		if n := strings.Count(strings.Join(result.Report.Notes, "\n"), "2 inputs of Boat.sea.example.com could not be tried: "+why); n != of.notes || len(result.Report.Inputs) != 2 {
			t.Errorf("%s: the report has %d such notes and %d inputs", name, n, len(result.Report.Inputs))
		}
	}
}

func TestARejectedWriteIsConfirmedWithoutLearningItsScenario(t *testing.T) {
	again := "\n*'\"again\":{'*) echo '{\"lesson\":{\"scenario\":{\"name\":\"boat-input-masts\"},\"runs\":2,\"findings\":[" +
		"{\"id\":\"7\",\"verdict\":\"REFUSED LATE\",\"scenario\":\"boat-input-masts\",\"sentence\":\"the API server keeps rejecting Service default/1\"}]}}' ;;"
	for _, outcome := range []inputs.Outcome{inputs.Rejected, inputs.Denied} {
		program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+strings.ReplaceAll(triedBoat, "crashed", string(outcome))+again)
		result, err := runIn(t.Context(), t, program, Options{Trials: []*scenario.Trials{boatTrials()}})
		if err != nil {
			t.Fatal(err)
		}
		r := result.Report
		if len(r.Remarks) != 1 || r.Remarks[0].Verdict != judge.RefusedLate || r.Remarks[0].Input != "spec.masts was set to 0" || r.Remarks[0].Reproduced != 2 {
			t.Errorf("%s: the report has %+v, and the notes %q", outcome, r.Remarks, r.Notes)
		}
	}
}

func TestADeletionThatABadInputPreventsIsReportedIfItLastsForTheHorizon(t *testing.T) {
	stuck := "{\"id\":\"7\",\"verdict\":\"STUCK TERMINATING\",\"scenario\":\"boat-deleted-masts\",\"sentence\":\"it never goes\"}"
	answer := func(findings string) string {
		return "{\"lesson\":{\"scenario\":{\"name\":\"boat-deleted-masts\"},\"runs\":2,\"findings\":[" + findings + "]}}"
	}
	for name, of := range map[string]struct {
		short, long string // what is seen after a short time, and after the horizon
		want        int
	}{
		"it stays":      {stuck, stuck, 1},
		"it goes late":  {stuck, "", 0},
		"it goes early": {"", stuck, 0},
	} {
		again := "\n*'\"again\":{'*) case \"$line\" in *'\"quiet\":\"3s\"'*) echo '" + answer(of.short) + "' ;; *) echo '" + answer(of.long) + "' ;; esac ;;"
		tried := strings.ReplaceAll(triedBoat, "\"outcome\":\"crashed\"", "\"outcome\":\"told\",\"trouble\":true")
		program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+tried+again)
		result, err := runIn(t.Context(), t, program, Options{Horizon: 15 * time.Second, Trials: []*scenario.Trials{boatTrials()}})
		if err != nil {
			t.Fatal(err)
		}
		r := result.Report
		if len(r.Remarks) != of.want || of.want > 0 && (r.Remarks[0].Verdict != judge.StuckTerminating || r.Remarks[0].Input != "spec.masts was set to 0") {
			t.Errorf("%s: the report has %+v, and the notes %q", name, r.Remarks, r.Notes)
		}
	}
}

func TestInputsDoNotWaitForALongLessonWhichFollowsThem(t *testing.T) {
	file, learning := filepath.Join(t.TempDir(), "asked"), filepath.Join(t.TempDir(), "learning")
	effects := strings.ReplaceAll(triedBoat, "crashed", "effect")
	program := shellLab(t, "*) echo \"$line\" >> "+file+"\nif test ! -e "+learning+"; then case \"$line\" in *'\"learn\"'*) touch "+learning+"; read -r line ;; esac; fi\ncase \"$line\" in\n"+
		learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+effects+"\n*) echo '{}' ;;\nesac ;;")
	c := newCheck(Options{Program: program, Dir: t.TempDir(), Workers: 1, Budget: time.Hour, Trials: []*scenario.Trials{boatTrials()}, Scenarios: scenarios("life")})
	c.began = c.began.Add(-10*time.Minute + 200*time.Millisecond)
	if err := c.work(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.fleet.Stop()
	if got := askedFor(t, file); len(got) < 3 || !slices.Equal(got[:3], []string{"learn", "try", "learn"}) {
		t.Errorf("the lab was asked to %q", got)
	}
	if c.lessons["life"] == nil || len(c.result.Report.NotLearnt) > 0 {
		t.Errorf("the scenario was not learnt after the inputs: %+v", c.result.Report.NotLearnt)
	}
	if c := newCheck(Options{Budget: time.Hour}); !c.inputsAt().IsZero() {
		t.Error("a lesson ends early although there are no inputs")
	}
}

// fleetOfTrials are trials of as many fields.
func fleetOfTrials(n int) *scenario.Trials {
	t := &scenario.Trials{Scenario: &scenario.Scenario{Name: "boat-inputs", Steps: []scenario.Step{{Name: scenario.CreateStep}}}, KindGroup: "Boat.sea.example.com"}
	for i := range n {
		step := fmt.Sprintf("change-%d", i)
		t.Trials = append(t.Trials, scenario.Trial{Field: fmt.Sprintf("spec.f%d", i), Verb: "change", Step: step, Undo: "undo-" + step})
		t.Scenario.Steps = append(t.Scenario.Steps, scenario.Step{Name: step}, scenario.Step{Name: "undo-" + step})
	}
	return t
}

func TestTheTrialsOfASlowControllerAreDividedAndKeepTheirOrder(t *testing.T) {
	tr := &trial{check: newCheck(Options{}), until: time.Now().Add(time.Hour)}
	whole := fleetOfTrials(12)
	var got []int
	everything := func(string) bool { return true }
	for _, p := range tr.pieces([]*scenario.Trials{whole}, everything) {
		from := p.numbers[0]
		got = append(got, from, len(p.trials.Trials))
		if p.of != whole || p.trials.Trials[0].Field != whole.Trials[from].Field || p.trials.Scenario.Steps[1].Name != whole.Trials[from].Step {
			t.Errorf("piece %d begins with %+v", from, p.trials.Trials[0])
		}
	}
	if want := []int{0, 5, 5, 5, 10, 2}; !slices.Equal(got, want) {
		t.Errorf("the pieces begin with, and have, %v trials, want %v", got, want)
	}
	// The whole is tried in 36 s, much less than a quarter of the time.
	tr.lessons["life"] = &fleet.Lesson{Lesson: &lab.Lesson{Took: 5 * time.Second, Scenario: &scenario.Scenario{Steps: make([]scenario.Step, 5)}}}
	if all := tr.pieces([]*scenario.Trials{whole}, everything); len(all) != 1 {
		t.Errorf("the trials of a fast controller are divided into %d pieces", len(all))
	}
}

func TestTheOutcomesOfAPieceBelongToTheWholeScenario(t *testing.T) {
	effects := strings.ReplaceAll(triedBoat, "crashed", "effect")
	c := newCheck(Options{Program: shellLab(t, effects), Dir: t.TempDir(), Workers: 1})
	t.Cleanup(c.fleet.Stop)
	if err := c.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr, whole := &trial{check: c, until: time.Now().Add(time.Hour), end: time.Now().Add(time.Hour)}, fleetOfTrials(4)
	p := tr.pieces([]*scenario.Trials{whole}, func(key string) bool { return key == inputs.Key(whole, 1) || key == inputs.Key(whole, 3) })[0]
	err := tr.share(t.Context(), 1, func(ctx context.Context, w *fleet.Worker, _ int) error { return tr.all(ctx, w, p) })
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.tried) != 2 || tr.tried[0].of != whole || tr.tried[0].at != 1 || tr.tried[1].at != 3 {
		t.Errorf("the outcomes are %+v", tr.tried)
	}
}

func TestAFieldIsIdleUnlessItHasAnEffectTwice(t *testing.T) {
	for name, of := range map[string]struct {
		seen []attempt
		want conclusion
	}{
		"nothing was tried":                          {nil, undecided},
		"it has no effect":                           {[]attempt{quiet}, isIdle},
		"one effect may be a coincidence":            {[]attempt{effect, quiet}, undecided},
		"something else happened in the same time":   {[]attempt{effect, quiet, quiet}, isIdle},
		"it has an effect":                           {[]attempt{effect, effect}, isUsed},
		"it has an effect now and then":              {[]attempt{effect, quiet, effect}, isUsed},
		"one attempt shows nothing":                  {[]attempt{vain, quiet}, isIdle},
		"no attempt shows anything":                  {[]attempt{vain, vain}, isUncertain},
		"one effect, and nothing certain afterwards": {[]attempt{effect, vain, vain}, isUncertain},
		"too many attempts":                          {[]attempt{effect, vain, quiet, vain}, isUncertain},
	} {
		if got := conclude(of.seen); got != of.want {
			t.Errorf("%s: %v, want %v", name, got, of.want)
		}
	}
}

func TestOnlyAnAttemptThatShowsTheKnownEffectProvesThatAFieldHasNone(t *testing.T) {
	known := &inputs.Tried{Outcome: inputs.Effect, Signs: []string{"a", "b"}}
	tried := func(outcomes ...inputs.Outcome) (done []inputs.Tried) {
		for _, o := range outcomes {
			done = append(done, inputs.Tried{Outcome: o, Signs: []string{"a"}})
		}
		return done
	}
	other := tried(inputs.Inert, inputs.Effect)
	other[1].Signs = []string{"c"}
	for name, of := range map[string]struct {
		done  []inputs.Tried
		known *inputs.Tried
		want  attempt
	}{
		"the known effect shows":                    {tried(inputs.Inert, inputs.Effect), known, quiet},
		"another effect shows":                      {other, known, vain},
		"the field has an effect":                   {tried(inputs.Effect, inputs.Effect), known, effect},
		"the run ended before the known change":     {tried(inputs.Inert), known, vain},
		"the run ended before the field":            {tried(inputs.Unknown, inputs.Unknown), known, vain},
		"only one of two values has an effect":      {tried(inputs.Once, inputs.Effect), known, vain},
		"another sample has no effect":              {tried(inputs.Inert, inputs.Refused), nil, quiet},
		"one value has an effect in another sample": {tried(inputs.Inert, inputs.Effect), nil, effect},
		"another sample could not be tried":         {tried(inputs.Unknown), nil, vain},
		"nothing came back":                         {nil, known, vain},
	} {
		if got := evidenceOf(of.done, inputs.Inert, of.known); got != of.want {
			t.Errorf("%s: %v, want %v", name, got, of.want)
		}
	}
}

func TestFieldsAreIdleTogetherOnlyIfNoneHasAnEffectAndTheKnownOneShows(t *testing.T) {
	known := &inputs.Tried{Outcome: inputs.Effect, Signs: []string{"a"}}
	inert, shows := inputs.Tried{Outcome: inputs.Inert}, inputs.Tried{Outcome: inputs.Effect, Signs: []string{"a"}}
	for name, of := range map[string]struct {
		done []inputs.Tried
		want bool
	}{
		"none has an effect":          {[]inputs.Tried{inert, inert, shows}, true},
		"one has an effect":           {[]inputs.Tried{inert, shows, shows}, false},
		"together they are refused":   {[]inputs.Tried{{Outcome: inputs.Refused}, {Outcome: inputs.Refused}, shows}, false},
		"the known one does not show": {[]inputs.Tried{inert, inert, inert}, false},
		"nothing came back":           {nil, false},
	} {
		if got := areIdle(of.done, inputs.Inert, known); got != of.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestFieldsWithoutAnEffectAreConfirmedTogetherAndElseAlone(t *testing.T) {
	whole := fleetOfTrials(4)
	for i := range whole.Scenario.Steps {
		whole.Scenario.Steps[i].Patch = &scenario.Patch{Merge: []byte(`{"spec":{}}`)}
	}
	idle := inputs.Tried{Outcome: inputs.Inert}
	effect := inputs.Tried{Outcome: inputs.Effect, Signs: []string{"a"}}
	for name, of := range map[string]struct {
		answers [][]inputs.Tried
		late    bool // the time is over once they have begun
		remarks int
	}{
		"no field has an effect":                         {[][]inputs.Tried{{idle, idle, idle, effect}}, false, 3},
		"no field has an effect, shortly before the end": {[][]inputs.Tried{{idle, idle, idle, effect}}, true, 3},
		"one field has an effect, and the time is over":  {[][]inputs.Tried{{effect, effect, effect, effect}}, true, 0},
		"one field has an effect": {[][]inputs.Tried{
			{effect, effect, effect, effect},
			{idle, effect}, {effect, effect}, {effect, effect}, {idle, effect},
		}, false, 2},
	} {
		tr := repeating(t, of.answers, func(ctx context.Context, tr *trial, w *fleet.Worker) error {
			for i, one := range whole.Trials {
				outcome := idle
				if i == 3 {
					outcome = effect
				}
				outcome.Trial = one
				tr.tried = append(tr.tried, triedInput{Tried: outcome, of: whole, at: i})
			}
			groups := tr.idleGroups(slices.Clone(tr.tried[:3]))
			if len(groups) != 1 {
				t.Fatalf("%s: %d groups", name, len(groups))
			}
			if of.late {
				tr.end = time.Now()
			}
			return groups[0].run(ctx, w, groups[0].triedInput)
		})
		if of.late && of.remarks == 0 && len(tr.doubts) != 3 {
			t.Errorf("%s: %d fields are doubtful, want 3: %q", name, len(tr.doubts), tr.doubts)
		}
		if n := len(tr.result.Report.Remarks); n != of.remarks {
			t.Errorf("%s: %d remarks, want %d: %+v", name, n, of.remarks, tr.result.Report.Remarks)
		}
	}
}

// repeating returns a trial whose lab gives the answers to try, one after the other, and calls do with the
// lab's worker.
func repeating(t *testing.T, answers [][]inputs.Tried, do func(context.Context, *trial, *fleet.Worker) error) *trial {
	t.Helper()
	file := filepath.Join(t.TempDir(), "answers")
	var lines bytes.Buffer
	for _, answer := range answers {
		if err := json.NewEncoder(&lines).Encode(map[string]any{"tried": answer}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	program := shellLab(t, "*'\"try\"'*) answer=$(head -n 1 "+file+"); sed -i 1d "+file+"; printf '%s\\n' \"$answer\" ;;")
	tr := &trial{check: newCheck(Options{Program: program, Dir: t.TempDir(), Workers: 1}), end: time.Now().Add(time.Hour)}
	if err := tr.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer tr.fleet.Stop()
	err := tr.fleet.Each(t.Context(), 1, func(ctx context.Context, w *fleet.Worker, _ int) error { return do(ctx, tr, w) })
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadFile(file); err != nil || len(left) > 0 {
		t.Errorf("%v: these answers were not asked for: %s", err, left)
	}
	return tr
}

func TestAFieldThatCannotBeDecidedIsNamed(t *testing.T) {
	inert, unknown := []inputs.Tried{{Outcome: inputs.Inert}}, []inputs.Tried{{Outcome: inputs.Unknown}}
	affects := []inputs.Tried{{Outcome: inputs.Effect}}
	for name, of := range map[string]struct {
		answers [][]inputs.Tried
		idle    bool
		notes   int
	}{
		"it has no effect":                  {[][]inputs.Tried{inert}, true, 0},
		"one effect is a coincidence":       {[][]inputs.Tried{affects, inert, inert}, true, 0},
		"it has an effect":                  {[][]inputs.Tried{affects, affects}, false, 0},
		"the run ends early, but not twice": {[][]inputs.Tried{unknown, inert}, true, 0},
		"the runs end early":                {[][]inputs.Tried{unknown, unknown}, false, 1},
	} {
		d := triedInput{Tried: inputs.Tried{Trial: scenario.Trial{Field: "spec.masts"}, Outcome: inputs.Inert}, of: boatTrials()}
		tr := repeating(t, of.answers, func(ctx context.Context, tr *trial, w *fleet.Worker) error {
			idle, err := tr.confirmIdle(ctx, w, d, d.of, nil)
			if idle != of.idle {
				t.Errorf("%s: idle: %t", name, idle)
			}
			return err
		})
		tr.doubted()
		const note = "1 field seemed to have no effect, but this could not be confirmed: spec.masts of Boat.sea.example.com"
		if got := tr.result.Report.Notes; len(got) != of.notes || of.notes > 0 && got[0] != note {
			t.Errorf("%s: the notes are %q", name, got)
		}
	}
}

func TestAnAttemptThatDoesNotShowWhetherTheControllerStallsIsRepeated(t *testing.T) {
	did := func(third inputs.Outcome, signs ...string) []inputs.Tried {
		works := inputs.Tried{Outcome: inputs.Effect, Signs: []string{"a"}}
		return []inputs.Tried{works, works, {Outcome: third, Signs: signs}}
	}
	unclear, stalls, goesOn := did(inputs.Unknown), did(inputs.Inert), did(inputs.Effect, "a")
	for name, of := range map[string]struct {
		answers [][]inputs.Tried
		stalls  bool
		notes   int
	}{
		"it goes on":              {[][]inputs.Tried{goesOn}, false, 0},
		"it stalls":               {[][]inputs.Tried{stalls}, true, 0},
		"it stalls at the second": {[][]inputs.Tried{unclear, stalls}, true, 0},
		"no attempt shows it":     {[][]inputs.Tried{unclear, unclear}, false, 1},
	} {
		d := triedInput{Tried: inputs.Tried{Trial: scenario.Trial{Field: "spec.masts", Verb: "remove"}}, of: boatTrials()}
		tr := repeating(t, of.answers, func(ctx context.Context, tr *trial, w *fleet.Worker) error {
			stalls, err := tr.stalls(ctx, w, d, d.of, minHorizon, 1)
			if stalls != of.stalls {
				t.Errorf("%s: stalls: %t", name, stalls)
			}
			return err
		})
		const note = "Boat.sea.example.com: after spec.masts was removed, it could not be decided"
		if got := tr.result.Report.Notes; len(got) != of.notes || of.notes > 0 && !strings.HasPrefix(got[0], note) {
			t.Errorf("%s: the notes are %q", name, got)
		}
	}
}

func TestInputsThatAreNotTriedAgainAreCounted(t *testing.T) {
	tr := &trial{check: newCheck(Options{})}
	all := make([]triedInput, 3)
	if got := tr.firstOf("fields", all, 3); len(got) != 3 || len(tr.result.Report.Notes) > 0 {
		t.Errorf("%d inputs, and the notes %q", len(got), tr.result.Report.Notes)
	}
	got := tr.firstOf("fields", all, 2)
	if want := []string{"only 2 of 3 fields are tried again; repair what is reported, and check again"}; len(got) != 2 || !slices.Equal(tr.result.Report.Notes, want) {
		t.Errorf("%d inputs, and the notes %q", len(got), tr.result.Report.Notes)
	}
}

func TestEffectsOfDifferentFieldsThatStayInTheSamePlaceAreAllConfirmed(t *testing.T) {
	tr := &trial{check: newCheck(Options{})}
	for _, outcome := range []inputs.Outcome{inputs.Kept, inputs.Rejected} {
		for _, field := range []string{"spec.flag", "spec.hull"} {
			d := triedInput{of: boatTrials()}
			d.Field, d.Outcome, d.Why = field, outcome, "the Sail a"
			tr.tried = append(tr.tried, d)
		}
	}
	var got []string
	for _, d := range tr.suspects() {
		got = append(got, string(d.Outcome)+" "+d.Field)
	}
	if want := []string{"rejected spec.flag", "kept spec.flag", "kept spec.hull"}; !slices.Equal(got, want) {
		t.Errorf("confirmed are %q, want %q", got, want)
	}
}

func TestWhatTwoShortRunsConfirmComesBeforeWhatNeedsALesson(t *testing.T) {
	tr := &trial{check: newCheck(Options{})}
	for _, outcome := range []inputs.Outcome{inputs.Kept, inputs.Effect, inputs.Restless, inputs.Stuck, inputs.Denied, inputs.Crashed} {
		d := triedInput{of: boatTrials()}
		d.Field, d.Outcome = "spec."+string(outcome), outcome
		tr.tried = append(tr.tried, d)
	}
	var order []inputs.Outcome
	for _, d := range tr.suspects() {
		order = append(order, d.Outcome)
	}
	if want := []inputs.Outcome{inputs.Crashed, inputs.Denied, inputs.Stuck, inputs.Kept, inputs.Restless}; !slices.Equal(order, want) {
		t.Errorf("the order is %q, want %q", order, want)
	}
}
