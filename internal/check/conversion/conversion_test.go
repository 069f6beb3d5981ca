package conversion_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koboshi-dev/koboshi/internal/check/conversion"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// nothing accepts no loss.
func nothing(string, string) bool { return false }

func object(t *testing.T, text string) (o map[string]any) {
	t.Helper()
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// spec returns an object with a spec.
func spec(t *testing.T, text string) map[string]any {
	t.Helper()
	return object(t, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":`+text+`}`)
}

// lostOf returns what is lost if the stored version v1 is read as v2 and written back.
func lostOf(t *testing.T, created, back map[string]any) (places []string) {
	t.Helper()
	for _, f := range conversion.Judge([]conversion.Trip{{Kind: "Widget.example.com", From: "v1", Via: "v2", Storage: "v1", Sent: created, Created: created, Back: back}}, nothing) {
		for _, d := range f.Differences {
			places = append(places, d.Path+" "+d.Want+" "+d.Got)
		}
	}
	return places
}

func TestAValueThatDoesNotComeBackIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		created, back string
		want          []string
	}{
		"missing":               {`{"a":1,"b":"x"}`, `{"a":1}`, []string{`spec.b "x" `}},
		"changed":               {`{"a":3}`, `{"a":1}`, []string{`spec.a 3 1`}},
		"a whole part":          {`{"a":{"b":{"c":1}}}`, `{"a":{}}`, []string{`spec.a.b {"c":1} `}},
		"an item of a list":     {`{"a":["x","y"]}`, `{"a":["x"]}`, []string{`spec.a ["x","y"] ["x"]`}},
		"one of equal items":    {`{"a":["x","x"]}`, `{"a":["x","y"]}`, []string{`spec.a[1] "x" "y"`}},
		"in an item":            {`{"a":[{"n":"x","v":1}]}`, `{"a":[{"n":"x"}]}`, []string{`spec.a[0].v 1 `}},
		"zero became a default": {`{"a":0}`, `{"a":1}`, []string{`spec.a 0 1`}},
		"false became true":     {`{"a":false}`, `{"a":true}`, []string{`spec.a false true`}},
		"a quantity":            {`{"a":"1Gi"}`, `{"a":"1G"}`, []string{`spec.a "1Gi" "1G"`}},
		"a key with dots":       {`{"a":{"x.y/z":"1"}}`, `{"a":{"other":"1"}}`, []string{`spec.a[x.y/z] "1" `}},
	} {
		if diff := cmp.Diff(test.want, lostOf(t, spec(t, test.created), spec(t, test.back))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatMeansTheSameIsNotLost(t *testing.T) {
	for name, test := range map[string]struct{ created, back string }{
		"a default":             {`{"a":1}`, `{"a":1,"b":{"c":2}}`},
		"a default in an item":  {`{"a":[{"n":"x"}]}`, `{"a":[{"n":"x","p":"TCP"}]}`},
		"another order":         {`{"a":[{"n":"x"},{"n":"y"}]}`, `{"a":[{"n":"y"},{"n":"x"}]}`},
		"an item of another":    {`{"a":[{"n":"x"},{"n":"x","v":1},{"n":"x","w":2}]}`, `{"a":[{"n":"x","v":1},{"n":"x","w":2},{"n":"x"}]}`},
		"another item":          {`{"a":["x"]}`, `{"a":["x","y"]}`},
		"empty values":          {`{"a":"","b":0,"c":false,"d":{},"e":[],"f":null,"g":{"h":""}}`, `{}`},
		"a quantity":            {`{"a":"1000m","b":"1024Mi"}`, `{"a":"1","b":"1Gi"}`},
		"a duration":            {`{"a":"60s","b":"10m"}`, `{"a":"1m0s","b":"10m0s"}`},
		"a time":                {`{"a":"2030-01-01T00:00:00Z"}`, `{"a":"2030-01-01T01:00:00+01:00"}`},
		"a number or a text":    {`{"a":8080}`, `{"a":"8080"}`},
		"the status and others": {`{}`, `{}`},
	} {
		created, back := spec(t, test.created), spec(t, test.back)
		created["status"] = map[string]any{"ready": true}
		if lost := lostOf(t, created, back); len(lost) > 0 {
			t.Errorf("%s: %q", name, lost)
		}
	}
}

func TestLabelsAndAnnotationsOfTheUserMustComeBack(t *testing.T) {
	created := object(t, `{"metadata":{"name":"a","labels":{"l":"1"},"annotations":{"a":"1"}}}`)
	back := object(t, `{"metadata":{"name":"a","annotations":{"kept.example.com/data":"{}"}}}`)
	if diff := cmp.Diff([]string{`metadata.annotations.a "1" `, `metadata.labels.l "1" `}, lostOf(t, created, back)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if lost := lostOf(t, created, created); len(lost) > 0 {
		t.Errorf("%q", lost)
	}
}

func TestAnAnnotationThatKeepsDataMayChange(t *testing.T) {
	sent := spec(t, `{}`)
	created := object(t, `{"metadata":{"name":"a","annotations":{"kept.example.com/data":"1"}}}`)
	trip := conversion.Trip{Kind: "Widget.example.com", From: "v1", Via: "v2", Storage: "v2", Sent: sent, Created: created, Back: spec(t, `{}`)}
	if findings := conversion.Judge([]conversion.Trip{trip}, nothing); len(findings) > 0 {
		t.Errorf("%+v", findings)
	}
}

func TestAFindingNamesTheVersionsTheFieldAndBothValues(t *testing.T) {
	trip := conversion.Trip{
		Kind: "Widget.example.com", From: "v1", Via: "v2", Storage: "v1",
		Sent: spec(t, `{"size":3,"a":1}`), Created: spec(t, `{"size":3,"a":1}`), Back: spec(t, `{"size":1}`),
	}
	again := trip
	again.Back = spec(t, `{"size":2,"a":1}`)
	findings := conversion.Judge([]conversion.Trip{trip, again}, nothing)
	if len(findings) != 1 {
		t.Fatalf("%+v", findings)
	}
	f := findings[0]
	want := []state.Difference{
		{Object: "Widget.example.com", Path: "spec.a", Want: "1"},
		{Object: "Widget.example.com", Path: "spec.size", Want: "3", Got: "1"},
	}
	if diff := cmp.Diff(want, f.Differences); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if f.Verdict != judge.ConversionLossy || f.Scenario != "widget-example-com-v1-to-v2" || f.ID == "" ||
		f.Sentence != "v1 Widget loses spec.a, which was 1, and 1 more, when it is read as v2 and written back unchanged" {
		t.Errorf("%s, %s: %s", f.Verdict, f.Scenario, f.Sentence)
	}
	if diff := cmp.Diff(trip.Sent, f.Object); diff != "" {
		t.Errorf("the object is not the one that shows it:\n%s", diff)
	}
}

func TestKindsWithTheSameNameInTwoGroupsHaveTheirOwnFindings(t *testing.T) {
	trip := conversion.Trip{Kind: "Widget.example.com", From: "v1", Via: "v2", Storage: "v1", Created: spec(t, `{"a":1}`), Back: spec(t, `{}`)}
	other := trip
	other.Kind = "Widget.other.example.com"
	findings := conversion.Judge([]conversion.Trip{trip, other}, nothing)
	if len(findings) != 2 || findings[0].ID == findings[1].ID || findings[0].Scenario == findings[1].Scenario {
		t.Errorf("%+v", findings)
	}
}

func TestTheNameOfAConversionIsThatOfAScenario(t *testing.T) {
	long := conversion.Name("VSphereMachineTemplate.infrastructure.cluster.x-k8s.io", "v1alpha4", "v1beta1")
	other := conversion.Name("VSphereMachineTemplate.infrastructure.other.x-k8s.io", "v1alpha4", "v1beta1")
	if long == other || !strings.HasPrefix(long, "vspheremachinetemplate-infrastr") || !strings.HasSuffix(long, "-v1alpha4-to-v1beta1") {
		t.Errorf("the long names are %s and %s", long, other)
	}
	for _, name := range []string{long, conversion.Name("Widget.example.com", "v1", "v2")} {
		if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}

func TestAConversionIsCompleteIfEachObjectCameBack(t *testing.T) {
	trip := func(from, via string, back bool) conversion.Trip {
		t := conversion.Trip{Kind: "Widget.example.com", From: from, Via: via, Storage: "v1"}
		if back {
			t.Back = map[string]any{}
		}
		return t
	}
	trips := []conversion.Trip{
		trip("v1", "v2", true), trip("v1", "v2", true),
		trip("v2", "v1", false), trip("v2", "v1", true),
		trip("v1", "v3", true), trip("v1", "v3", false),
	}
	if diff := cmp.Diff([]string{"widget-example-com-v1-to-v2"}, conversion.Complete(trips)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if findings := conversion.Judge(trips, nothing); len(findings) > 0 {
		t.Errorf("what was never created is lost: %+v", findings)
	}
}

func TestALossOnTheWayToTheStoreIsFoundWithoutAnotherClient(t *testing.T) {
	trip := conversion.Trip{
		Kind: "Widget.example.com", From: "v1", Via: "v3", Storage: "v2",
		Sent: spec(t, `{"old":"x"}`), Created: spec(t, `{}`), Back: spec(t, `{}`),
	}
	findings := conversion.Judge([]conversion.Trip{trip}, nothing)
	if len(findings) != 1 || findings[0].Scenario != "widget-example-com-v1-to-v2" || findings[0].Sentence != `v1 Widget loses spec.old, which was "x", when it is stored as v2` {
		t.Errorf("%+v", findings)
	}
	trip.Storage = "v1" // an admission webhook may change what is sent
	if findings := conversion.Judge([]conversion.Trip{trip}, nothing); len(findings) > 0 {
		t.Errorf("%+v", findings)
	}
}

func TestSecretValuesAreNotShown(t *testing.T) {
	scrub.Known.Add("correct-horse-battery")
	lost := lostOf(t, spec(t, `{"a":"correct-horse-battery"}`), spec(t, `{"a":"b"}`))
	if len(lost) != 1 || lost[0] == `spec.a "correct-horse-battery" "b"` {
		t.Errorf("%q", lost)
	}
}

func TestALossThatTheProjectAcceptsIsNotNamed(t *testing.T) {
	trip := conversion.Trip{
		Kind: "Widget.example.com", From: "v1", Via: "v2", Storage: "v1",
		Sent: spec(t, `{"a":1,"b":2}`), Created: spec(t, `{"a":1,"b":2}`), Back: spec(t, `{}`),
	}
	only := func(all ...string) func(string, string) bool {
		return func(kind, path string) bool { return kind == "Widget.example.com" && slices.Contains(all, path) }
	}
	findings := conversion.Judge([]conversion.Trip{trip}, only("spec.a"))
	if len(findings) != 1 || len(findings[0].Differences) != 1 || findings[0].Differences[0].Path != "spec.b" {
		t.Errorf("%+v", findings)
	}
	if findings := conversion.Judge([]conversion.Trip{trip}, only("spec.a", "spec.b")); len(findings) > 0 {
		t.Errorf("%+v", findings)
	}
}
