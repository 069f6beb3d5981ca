package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// bareTrials are trials of objects without content, and the same trials alone.
func bareTrials(fields ...string) (bare, alone *scenario.Trials) {
	sc := &scenario.Scenario{Name: "boat-inputs", Steps: []scenario.Step{{Name: scenario.CreateStep}}}
	alone = &scenario.Trials{Scenario: sc, Title: "boat", KindGroup: "Boat.sea.example.com"}
	for _, field := range fields {
		merge := fmt.Sprintf(`{"spec":{%q:{}}}`, field)
		sc.Steps = append(sc.Steps, scenario.Step{Name: field, Patch: &scenario.Patch{Merge: []byte(merge)}})
		alone.Trials = append(alone.Trials, scenario.Trial{Field: "spec." + field, Verb: "empty", Value: []byte("{}"), Step: field})
	}
	copied, named := *alone, *sc
	named.Name = "boat-bare"
	bare = &copied
	bare.Scenario, bare.Bare = &named, true
	return bare, alone
}

// crashesWith answers requests to try trials as a controller that crashes as soon as all fields of one of the given
// lists were added. The fields in a list are in alphabetical order, as in a merge patch.
func crashesWith(file string, lists ...string) (arms string) {
	const outcome = `"field":"spec.%s","verb":"empty","outcome":"%s"`
	asked := ") echo \"$line\" >> " + file + "; "
	for _, list := range lists {
		fields := strings.Fields(list)
		added := "*'\"name\":\"boat-bare\"'*"
		for _, field := range fields {
			added += "'\"" + field + "\":{}'*"
		}
		arms += "\n" + added + "'\"joint\"'*" + asked + "echo '{\"tried\":[{" + fmt.Sprintf(outcome, "deck", "crashed") + "}]}' ;;"
		// One after the other: the last of the list that is added crashes the controller.
		arms += "\n" + added + asked + "left=" + strconv.Itoa(len(fields)) + "; tried=; " +
			`for field in $(echo "${line#*\"trials\":\[}" | grep -o '"field":"spec[^"]*"' | cut -d. -f2 | tr -d '"'); do ` +
			"case ' " + list + " ' in *\" $field \"*) left=$((left-1));; esac; " +
			`outcome=unknown; test $left = 0 && outcome=crashed && left=-1; ` +
			`tried="$tried{\"field\":\"spec.$field\",\"verb\":\"empty\",\"outcome\":\"$outcome\"},"; done; echo "{\"tried\":[${tried%,}]}" ;;`
	}
	return arms + "\n*'\"name\":\"boat-bare\"'*" + asked + "echo '{\"tried\":[{" + fmt.Sprintf(outcome, "deck", "unknown") + "}]}' ;;"
}

func TestTheObjectsThatCrashTheControllerAreFoundAmongManyThatAreAddedTogether(t *testing.T) {
	for name, of := range map[string]struct {
		crashing []string
		tries    int
		want     []string
	}{
		"none": {nil, 1, nil},
		// All ten, half of them, five one after the other, and then the other nine.
		"one":  {[]string{"mast"}, 4, []string{"spec.mast was set to {}"}},
		"last": {[]string{"tiller"}, 4, []string{"spec.tiller was set to {}"}},
		// The same, but of the other nine a half is tried as well, and one after the other, and then the other eight.
		"two":                             {[]string{"mast", "keel"}, 7, []string{"spec.keel was set to {}", "spec.mast was set to {}"}},
		"two that only crash it together": {[]string{"keel mast"}, 4, []string{"spec.keel was set to {}"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "asked")
			bare, alone := bareTrials("mast", "keel", "deck", "sail", "hatch", "cabin", "galley", "berth", "pump", "tiller")
			effects := "\n*'\"try\"'*) echo '{\"tried\":[]}' ;;"
			program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+crashesWith(file, of.crashing...)+effects)
			result, err := Run(t.Context(), Options{
				Program: program, Dir: t.TempDir(), Workers: 1, Scenarios: scenarios("life"), Trials: []*scenario.Trials{bare, alone},
			})
			if err != nil {
				t.Fatal(err)
			}
			hunted(t, result, file, of.want, of.tries)
		})
	}
}

// hunted compares the inputs that crash the controller, and the number of requests in a file, with what is expected.
func hunted(t *testing.T, result *Result, file string, want []string, tries int) {
	t.Helper()
	var crashed []string
	for _, input := range result.Report.Inputs {
		if input.Outcome == "crashed" {
			crashed = append(crashed, input.Given)
		}
	}
	if diff := cmp.Diff(want, crashed); diff != "" {
		t.Errorf("inputs that crash the controller, -want +got:\n%s", diff)
	}
	asked, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(asked), "\n"); got != tries {
		t.Errorf("groups were tried %d times, want %d:\n%s", got, tries, asked)
	}
}

func TestACrashThatIsNotLedBackToOneChangeIsNamedInANote(t *testing.T) {
	bare, alone := bareTrials("mast", "keel")
	const crashed, unknown = `"outcome":"crashed"`, `"outcome":"unknown"`
	answer := func(outcome string) string { return "echo '{\"tried\":[{" + outcome + "}]}' ;;" }
	program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+
		"\n*'\"name\":\"boat-bare\"'*'\"joint\"'*) "+answer(crashed)+"\n*'\"name\":\"boat-bare\"'*) "+answer(unknown)+
		"\n*'\"try\"'*) echo '{\"tried\":[]}' ;;")
	result, err := Run(t.Context(), Options{
		Program: program, Dir: t.TempDir(), Workers: 1, Scenarios: scenarios("life"), Trials: []*scenario.Trials{bare, alone},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "Boat.sea.example.com: the controller panicked or exited after several changes at once, but Koboshi did not find out " +
		"which of them causes this: spec.mast was set to {}, spec.keel was set to {}"
	if !slices.Contains(result.Report.Notes, want) {
		t.Errorf("the notes are %q, want also %q", result.Report.Notes, want)
	}
}

// freshTrials are trials that each create another boat with one of the parts empty.
func freshTrials(fields ...string) *scenario.Trials {
	boat := func(name, empty string) []scenario.Manifest {
		spec := map[string]any{}
		for _, field := range fields {
			spec[field] = map[string]any{"number": int64(1)}
		}
		if empty != "" {
			spec[empty] = map[string]any{}
		}
		return []scenario.Manifest{{Object: map[string]any{"kind": "Boat", "metadata": map[string]any{"name": name}, "spec": spec}}}
	}
	sc := &scenario.Scenario{Name: "boat-fresh", Steps: []scenario.Step{{Name: scenario.CreateStep, Apply: boat("ellen", "")}}}
	fresh := &scenario.Trials{Scenario: sc, Title: "boat", KindGroup: "Boat.sea.example.com", Bare: true}
	for _, field := range fields {
		sc.Steps = append(sc.Steps, scenario.Step{Name: field, Apply: boat("ellen-"+field, field)})
		fresh.Trials = append(fresh.Trials, scenario.Trial{Field: "spec." + field, Verb: "create-empty", Value: []byte("{}"), Step: field})
	}
	return fresh
}

func TestAGroupWithWhichTheControllerMakesNoWorkloadIsHalvedBecauseItMayHideACrash(t *testing.T) {
	for name, of := range map[string]struct {
		workloads bool // whether the controller makes any from the sample
		want      []string
		tries     int
	}{
		// All three, the deck, the others, one after the other; and all but the mast, the deck, and the keel.
		"it makes workloads": {true, []string{"another object was created with spec.mast set to {}"}, 7},
		"it makes none":      {false, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "asked")
			answer := func(pattern, tried string) string {
				return "\n*'\"name\":\"boat-fresh\"'*" + pattern + ") echo \"$line\" >> " + file + "; echo '{\"tried\":[" + tried + "]}' ;;"
			}
			one := func(field, outcome, signs string) string {
				return fmt.Sprintf(`{"field":"spec.%s","verb":"create-empty","outcome":"%s","signs":[%s]}`, field, outcome, signs)
			}
			lesson := &lab.Lesson{Workloads: of.workloads, Scenario: scenarios("boat-life")[0]}
			program := shellLab(t, teaches(t, lesson)+"\n*'\"crash\"'*) echo '{\"lesson\":{\"scenario\":{\"name\":\"a\"},\"runs\":1}}' ;;"+
				answer(`'"deck":{}'*'"joint"'*`, one("deck", "effect", ""))+
				answer(`'"mast":{}'*'"joint"'*`, one("mast", "crashed", ""))+
				answer(`'"joint"'*`, one("keel", "effect", `"created Pod default/a"`))+
				answer("", one("mast", "crashed", "")+","+one("keel", "unknown", ""))+
				"\n*'\"try\"'*) echo '{\"tried\":[]}' ;;")
			result, err := Run(t.Context(), Options{
				Program: program, Dir: t.TempDir(), Workers: 1, Profile: subject.ProfileWorkloads, Scenarios: scenarios("boat-life"),
				Trials: []*scenario.Trials{freshTrials("deck", "mast", "keel")},
			})
			if err != nil {
				t.Fatal(err)
			}
			hunted(t, result, file, of.want, of.tries)
		})
	}
}

func TestANewObjectForWhichThereWasNoTimeIsMadeLater(t *testing.T) {
	program := shellLab(t, "*'\"name\":\"boat-fresh\"'*) echo '{\"tried\":[{\"field\":\"spec.mast\",\"verb\":\"create-empty\",\"outcome\":\"crashed\"}]}' ;;")
	c := newCheck(Options{Program: program, Dir: t.TempDir(), Workers: 1})
	defer c.fleet.Stop()
	if err := c.fleet.Grow(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Second)
	s := &screening{trial: &trial{check: c, until: past}, until: past, shown: map[string]triedInput{}}
	changed, _ := bareTrials("mast", "keel")
	fresh := freshTrials("mast", "keel")
	for _, group := range []*scenario.Trials{fresh, changed} {
		if err := s.hunt(t.Context(), nil, group); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]*scenario.Trials{fresh}, s.late); diff != "" {
		t.Fatalf("groups that were put off, -want +got:\n%s", diff)
	}
	s.trial.until = time.Now().Add(time.Hour)
	if err := s.callAll(t.Context(), callsOf(s.putOff(), s.hunt)); err != nil {
		t.Fatal(err)
	}
	if len(s.tried) == 0 || s.tried[0].Outcome != inputs.Crashed || s.tried[0].Field != "spec.mast" {
		t.Errorf("the trials made later are %+v", s.tried)
	}
	if len(s.late) != 0 {
		t.Errorf("%d groups are put off again, although there is time", len(s.late))
	}
}
