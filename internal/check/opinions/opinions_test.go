package opinions

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func object(kind, name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}
}

func TestWhatAScenarioDefinesItselfWins(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "givens.yaml")
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: default}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &Opinions{
		Ignore: []string{"A x", "B y"}, Givens: []string{"givens.yaml"},
		Rest: scenario.Rest{Quiet: scenario.Duration(time.Second), Timeout: scenario.Duration(time.Minute)},
	}
	o.Resolve(dir)
	own := object("Secret", "a")
	own["data"] = map[string]any{"own": "x"}
	original := &scenario.Scenario{
		Name: "own", Ignore: []string{"B y", "C z"}, Given: []scenario.Manifest{{Object: own}},
		Rest: scenario.Rest{Quiet: scenario.Duration(2 * time.Second)},
	}
	applied, err := o.Apply([]*scenario.Scenario{original, {Name: "plain"}})
	if err != nil {
		t.Fatal(err)
	}
	got := applied[0]
	if want := []string{"B y", "C z", "A x"}; !slices.Equal(got.Ignore, want) {
		t.Errorf("ignore %q, want %q", got.Ignore, want)
	}
	if got.Rest.Quiet != original.Rest.Quiet || got.Rest.Timeout != o.Rest.Timeout {
		t.Errorf("rest %+v", got.Rest)
	}
	if len(got.Given) != 2 || got.Given[1].Object["data"] == nil {
		t.Errorf("given %+v: want the Secret b, and then the scenario's own Secret a", got.Given)
	}
	if plain := applied[1]; len(plain.Given) != 2 || len(plain.Ignore) != 2 {
		t.Errorf("a scenario that defines nothing: %+v", plain)
	}
	if len(original.Ignore) != 2 || len(original.Given) != 1 {
		t.Errorf("the original has changed: %+v", original)
	}
}

func TestAMissingFileOfGivensIsNamed(t *testing.T) {
	o := &Opinions{Givens: []string{"nowhere.yaml"}}
	if _, err := o.Apply(nil); err == nil || !strings.Contains(err.Error(), "check.givens: nowhere.yaml does not exist") {
		t.Errorf("%v", err)
	}
}

func TestKindsOfFaultsAreSelected(t *testing.T) {
	for _, tt := range []struct {
		faults Faults
		want   []fault.Kind
	}{
		{Faults{}, nil},
		{Faults{Only: []string{"conflict", "kill-lost"}}, []fault.Kind{fault.KillLost, fault.Conflict}},
		{Faults{Only: []string{"conflict", "kill-lost"}, Skip: []string{"conflict"}}, []fault.Kind{fault.KillLost}},
	} {
		if got := (&Opinions{Faults: tt.faults}).Kinds(); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.faults, got, tt.want)
		}
	}
	if got := (&Opinions{Faults: Faults{Skip: []string{"conflict"}}}).Kinds(); len(got) != len(fault.Kinds())-1 || slices.Contains(got, fault.Conflict) {
		t.Errorf("all but conflict: %v", got)
	}
}

func TestOnlyInterferenceWithTheNamedKindsIsSkipped(t *testing.T) {
	o := &Opinions{Interference: Interference{Skip: []string{"Job.batch", "*.example.com"}}}
	for f, want := range map[fault.Fault]bool{
		{Kind: fault.DeleteChild, Target: "Job.batch/default/a"}:          true,
		{Kind: fault.EditChild, Target: "Widget.example.com//a"}:          true,
		{Kind: fault.DeleteChild, Target: "CronJob.batch/default/a"}:      false,
		{Kind: fault.AddFinalizer, Target: "Job.batch/default/a"}:         false,
		{Kind: fault.Conflict, Point: fault.Point{Object: "Job.batch/a"}}: false,
	} {
		if got := o.Meddles(f); got != want {
			t.Errorf("%s %s: %v", f.Kind, f.Target, got)
		}
	}
}

func TestASilenceNamesTheLineForEachDifference(t *testing.T) {
	kill := &fault.Fault{Kind: fault.KillLost}
	missing := []state.Difference{{Object: "Secret default/a"}, {Object: "Widget.x default/w", Path: "status.conditions[Ready].message", Want: `"a"`, Got: `"b"`}}
	for name, tt := range map[string]struct {
		finding judge.Finding
		want    string
	}{
		"a divergence":    {judge.Finding{Verdict: judge.Diverged, Fault: kill, Differences: missing}, "check:\n  ignore:\n  - Secret default/a *\n  - Widget.x default/w status.conditions[Ready].message\n"},
		"a leak":          {judge.Finding{Verdict: judge.Leak, Differences: []state.Difference{{Object: "ConfigMap default/a", Got: `"there"`}}}, "check:\n  ignore:\n  - ConfigMap default/a *\n"},
		"a deleted child": {judge.Finding{Verdict: judge.Diverged, Fault: &fault.Fault{Kind: fault.DeleteChild, Target: "Job.batch/default/a"}, Differences: missing}, "check:\n  interference:\n    skip:\n    - Job.batch\n"},
		"a renewed value": {judge.Finding{Verdict: judge.DestructiveBlip, Fault: kill, Differences: []state.Difference{{Object: "Secret default/a", Path: "data.tls.key"}}}, "check:\n  ignore:\n  - Secret default/a data[tls.key]\n"},
		"a blip":          {judge.Finding{Verdict: judge.DestructiveBlip, Fault: kill, Differences: []state.Difference{{Object: "Secret default/a", Path: "(deletions)"}}}, "check:\n  ignore:\n  - Secret default/a *\n"},
		"a lost mark":     {judge.Finding{Verdict: judge.Diverged, Fault: kill, Differences: []state.Difference{{Object: "Secret default/a", Path: "metadata.finalizers", Want: `"x"`}}}, ""},
		"a lost write":    {judge.Finding{Verdict: judge.Diverged, Fault: kill, Differences: []state.Difference{{Object: "Secret default/a", Path: "metadata.managedFields", Want: `"x"`}}}, ""},
		"a crash":         {judge.Finding{Verdict: judge.Crashed, Fault: kill}, ""},
		"a hot loop":      {judge.Finding{Verdict: judge.HotLoop}, ""},
		"a split brain":   {judge.Finding{Verdict: judge.SplitBrain, Fault: kill, Differences: missing}, ""},
		"a leaked secret": {judge.Finding{Verdict: judge.SecretLeaked, Differences: []state.Difference{{Object: "ConfigMap default/a", Path: "data[app.conf]", Got: `"x"`}}}, "check:\n  ignore:\n  - ConfigMap default/a data[app.conf]\n"},
		"a logged secret": {judge.Finding{Verdict: judge.SecretLeaked, Differences: []state.Difference{{Object: "Secret default/a", Path: judge.LogPath, Got: `"x"`}}}, ""},
		"a ledger":        {judge.Finding{Verdict: judge.Leak, Fault: kill, Detail: "bucket-2"}, ""},
	} {
		got := Silence(tt.finding)
		if tt.want == "" {
			if got != nil {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if got == nil || got.Add != tt.want || !strings.HasPrefix(got.Wrong, "It is wrong ") || strings.Count(got.Wrong, ".") != 1 {
			t.Errorf("%s: %+v, want\n%s", name, got, tt.want)
		}
	}
}

func TestAFieldThatMayBeLostStandsForTheFieldsInItAndForAllItems(t *testing.T) {
	c := Conversions{Lossy: []string{"Widget.example.com spec.parts[].size"}}
	for path, want := range map[string]bool{"spec.parts[0].size": true, "spec.parts[12].size.min": true, "spec.parts": false, "spec.parts[0]": false} {
		if got := c.Allows("Widget.example.com", path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
	f := judge.Finding{Verdict: judge.ConversionLossy, Differences: []state.Difference{
		{Object: "Widget.example.com", Path: "spec.parts[0].size"}, {Object: "Widget.example.com", Path: "spec.parts[1].size"},
	}}
	if got := Silence(f); got == nil || got.Add != "check:\n  conversions:\n    lossy:\n    - Widget.example.com spec.parts[].size\n" {
		t.Errorf("the lines are %+v", got)
	}
}

func TestAFieldThatNeedsNoEffectStandsForTheFieldsInIt(t *testing.T) {
	i := Inputs{Inert: []string{"Widget.example.com spec.note"}}
	for field, want := range map[string]bool{"spec.note": true, "spec.note.text": true, "spec.note[].text": true, "spec.notes": false, "spec": false} {
		if got := i.Allows("Widget.example.com", field); got != want {
			t.Errorf("%s: %t", field, got)
		}
	}
	if i.Allows("Gadget.example.com", "spec.note") {
		t.Error("the setting holds for another kind")
	}
	f := judge.Finding{Verdict: judge.InertField, Differences: []state.Difference{{Object: "Widget.example.com default/w", Path: "spec.note"}}}
	if got := Silence(f); got == nil || got.Add != "check:\n  inputs:\n    inert:\n    - Widget.example.com spec.note\n" {
		t.Errorf("the lines are %+v", got)
	}
}

func TestWhatAnUpgradeChangesIsAcceptedAsExpected(t *testing.T) {
	f := judge.Finding{Verdict: judge.UpgradeChurn, Differences: []state.Difference{{Object: "Deployment.apps default/web", Path: "spec.template.metadata.annotations[a/b]"}}}
	got := Silence(f)
	if got == nil || !strings.Contains(got.Add, "upgrade:\n    expected:\n    - Deployment.apps default/web spec.template.metadata.annotations[a/b]") {
		t.Errorf("%+v", got)
	}
	if f.Verdict = judge.Wedged; Silence(f) != nil {
		t.Error("a rejected write can be accepted")
	}
}
