package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
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

// crashesWith answers requests to try trials as a controller that crashes if all fields of one of the given lists
// are added at once. The fields in a list are in alphabetical order, as in a merge patch.
func crashesWith(file string, lists ...string) (arms string) {
	joint := "*'\"name\":\"boat-bare\"'*"
	answer := func(outcome string) string {
		return ") echo \"$line\" >> " + file + "; echo '{\"tried\":[{\"field\":\"spec.deck\",\"verb\":\"empty\",\"outcome\":\"" + outcome + "\"}]}' ;;"
	}
	for _, list := range lists {
		arms += "\n" + joint
		for _, field := range strings.Fields(list) {
			arms += "'\"" + field + "\":{}'*"
		}
		arms += answer("crashed")
	}
	return arms + "\n" + joint + answer("unknown")
}

func TestTheObjectsThatCrashTheControllerAreFoundAmongManyThatAreAddedTogether(t *testing.T) {
	for name, of := range map[string]struct {
		crashing []string
		tries    int
		want     []string
	}{
		"none": {nil, 1, nil},
		// A group of five, of two, and each of these two.
		"two that only crash it together": {[]string{"keel mast"}, 4, nil},
		// A group of five, of two and of one, and then the other four.
		"one":  {[]string{"mast"}, 4, []string{"spec.mast was set to {}"}},
		"last": {[]string{"tiller"}, 6, []string{"spec.tiller was set to {}"}},
		"two":  {[]string{"mast", "keel"}, 7, []string{"spec.keel was set to {}", "spec.mast was set to {}"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "asked")
			bare, alone := bareTrials("mast", "keel", "deck", "sail", "tiller")
			effects := "\n*'\"try\"'*) echo '{\"tried\":[]}' ;;"
			program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;"+crashesWith(file, of.crashing...)+effects)
			result, err := Run(t.Context(), Options{
				Program: program, Dir: t.TempDir(), Workers: 1, Scenarios: scenarios("life"), Trials: []*scenario.Trials{bare, alone},
			})
			if err != nil {
				t.Fatal(err)
			}
			var crashed []string
			for _, input := range result.Report.Inputs {
				if input.Outcome == "crashed" {
					crashed = append(crashed, input.Given)
				}
			}
			if diff := cmp.Diff(of.want, crashed); diff != "" {
				t.Errorf("inputs that crash the controller, -want +got:\n%s", diff)
			}
			asked, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(string(asked), "\n"); got != of.tries {
				t.Errorf("groups were tried %d times, want %d", got, of.tries)
			}
		})
	}
}
