package verdict

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// rounds makes a table of one spec. Each argument holds the outcomes of a round as two
// letters, for stock and for Koboshi.
func rounds(letters ...string) *Table {
	word := map[byte]string{'p': "passed", 'f': "failed", 's': "skipped"}
	t := &Table{}
	for _, round := range letters {
		var runs [2]map[string]Outcome
		for side := range runs {
			runs[side] = map[string]Outcome{"another": {Word: "passed"}}
			if w := word[round[side]]; w != "" {
				runs[side]["spec"] = Outcome{Word: w}
			}
		}
		t.Add(runs)
	}
	return t
}

func TestASpecIsJudgedByAllItsRuns(t *testing.T) {
	for _, test := range []struct {
		rounds []string
		want   Kind // "" for no finding
	}{
		{rounds: []string{"pp"}},
		{rounds: []string{"pp", "pp"}},
		{rounds: []string{"ff", "ff"}},
		{rounds: []string{"ss"}},
		{rounds: []string{"pf"}, want: Worse},
		{rounds: []string{"pf", "pf", "pf"}, want: Worse},
		{rounds: []string{"p-", "p-"}, want: Worse},
		{rounds: []string{"ps"}, want: Worse},
		{rounds: []string{"p-", "pf"}, want: Worse},
		{rounds: []string{"fp", "fp"}, want: Other},
		{rounds: []string{"-p"}, want: Other},
		{rounds: []string{"sp"}, want: Other},
		{rounds: []string{"pf", "pp"}, want: Flaky},
		{rounds: []string{"pp", "pf"}, want: Flaky},
		{rounds: []string{"fp", "pp"}, want: Flaky},
		{rounds: []string{"pf", "fp"}, want: Flaky},
		{rounds: []string{"ff", "pf"}, want: Flaky},
		{rounds: []string{"ff", "pp"}, want: Flaky},
	} {
		var got Kind
		for _, f := range rounds(test.rounds...).Findings() {
			if f.Name != "spec" {
				t.Errorf("%v: found %s, which passed everywhere", test.rounds, f.Name)
			}
			got = f.Kind
		}
		if got != test.want {
			t.Errorf("%v: found %q, want %q", test.rounds, got, test.want)
		}
	}
}

func TestASpecThatTurnsUpLateWasNotRunBefore(t *testing.T) {
	found := rounds("--", "pp").Findings()
	if len(found) != 1 || found[0].Kind != Flaky {
		t.Fatalf("found %v, want one that is flaky", found)
	}
	want := []Outcome{{Word: "not run"}, {Word: "passed"}}
	if diff := cmp.Diff(want, found[0].Outcomes[Koboshi]); diff != "" {
		t.Error(diff)
	}
}

func TestFailuresOnBothSidesAreListed(t *testing.T) {
	if diff := cmp.Diff([]string{"spec"}, rounds("ff").Failing()); diff != "" {
		t.Error(diff)
	}
	for _, agreed := range []string{"pp", "ss", "pf"} {
		if got := rounds(agreed).Failing(); len(got) > 0 {
			t.Errorf("%s: listed %v", agreed, got)
		}
	}
}

func TestAReportIsDifferentUnlessAllIsEqualOrChance(t *testing.T) {
	for _, test := range []struct {
		rounds []string
		want   bool
	}{
		{rounds: []string{"pp"}},
		{rounds: []string{"pf", "pp"}},
		{rounds: []string{"ff"}},
		{rounds: []string{"pf"}, want: true},
		{rounds: []string{"fp"}, want: true},
		{want: true}, // nothing was compared
	} {
		r := Report{Suites: []*Suite{{Table: *rounds(test.rounds...)}}}
		if got := r.Different(); got != test.want {
			t.Errorf("%v: different is %v", test.rounds, got)
		}
	}
}

func TestAReportShowsBothSidesOfADifference(t *testing.T) {
	var table Table
	table.Add([2]map[string]Outcome{
		{"keeps its word": {Word: "passed"}, "goes": {Word: "failed", Why: "no network"}},
		{"keeps its word": {Word: "failed", Why: strings.Repeat("line\n", 100) + "the last line"}, "goes": {Word: "failed"}},
	})
	r := Report{Suites: []*Suite{{Name: "pkg/thing", Took: [2][]time.Duration{{time.Second}, {2 * time.Second}}, Table: table}}}
	var out strings.Builder
	r.Write(&out)
	for _, want := range []string{
		"worse: pkg/thing: keeps its word\n",
		"stock   1 passed\n",
		"koboshi 1 failed\n",
		"    the last line\n",
		"failed with both stock and koboshi: pkg/thing: goes\n",
		"2 specs compared, 0 passed with koboshi; 1 differ, 0 are flaky\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "line\n"); n > tail+1 {
		t.Errorf("the report shows %d lines of a failure", n)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 90 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
}
