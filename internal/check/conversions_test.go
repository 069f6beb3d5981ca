package check

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/check/conversion"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

const ships = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {kind: Ship, plural: ships}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: sea, name: harbor}}}}
  versions:
  - {name: v1, served: true, storage: true, schema: &schema {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {masts: {type: integer}}}}}}}
  - {name: v2, served: true, storage: false, schema: *schema}
`

// converting returns a check of a project that converts ships, with one scenario.
func converting(t *testing.T, name string, change func(*Options)) *check {
	t.Helper()
	crd := unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(ships), &crd.Object); err != nil {
		t.Fatal(err)
	}
	ship := map[string]any{"apiVersion": "sea.example.com/v1", "kind": "Ship", "metadata": map[string]any{"name": "sloop"}, "spec": map[string]any{"masts": int64(1)}}
	o := Options{
		Subject:   subject.Subject{Install: []unstructured.Unstructured{crd}, Webhook: subject.Webhook{Port: 9443}},
		Scenarios: []*scenario.Scenario{scenario.Conversion(name, ship)},
	}
	if change != nil {
		change(&o)
	}
	return newCheck(o)
}

func TestObjectsOfTheScenariosAndOthersAreConverted(t *testing.T) {
	kinds := converting(t, "life", nil).convertible()
	if len(kinds) != 1 || kinds[0].Kind != "Ship.sea.example.com" || len(kinds[0].Objects) < 4 {
		t.Errorf("%+v", kinds)
	}
}

func TestNothingIsConvertedWithoutAWebhookServerOrInAnotherKindOfCheck(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no webhook server": func(o *Options) { o.Subject.Webhook.Port = 0 },
		"a plan":            func(o *Options) { o.PlanOnly = true },
		"an upgrade":        func(o *Options) { o.Upgrade = &Upgrade{} },
		"the second shard":  func(o *Options) { o.Shard, o.Shards = 2, 2 },
		"another replay":    func(o *Options) { o.Only = true },
	} {
		if kinds := converting(t, "life", change).convertible(); len(kinds) > 0 {
			t.Errorf("%s: %+v", name, kinds)
		}
	}
}

func TestAReplayConvertsOnlyItsObject(t *testing.T) {
	c := converting(t, conversion.Name("Ship.sea.example.com", "v1", "v2"), func(o *Options) { o.Only = true })
	kinds := c.convertible()
	if len(kinds) != 1 || len(kinds[0].Objects) != 1 {
		t.Fatalf("%+v", kinds)
	}
	if (&unstructured.Unstructured{Object: kinds[0].Objects[0]}).GetName() != "sloop" {
		t.Errorf("%v", kinds[0].Objects[0])
	}
}

func TestALossyConversionIsSavedWithItsObject(t *testing.T) {
	c := converting(t, "life", nil)
	object := map[string]any{"apiVersion": "sea.example.com/v1", "kind": "Ship", "metadata": map[string]any{"name": "sloop-3"}}
	trip := conversion.Trip{
		Kind: "Ship.sea.example.com", From: "v1", Via: "v2", Storage: "v1",
		Sent: object, Created: map[string]any{"spec": map[string]any{"masts": int64(1)}}, Back: map[string]any{"spec": map[string]any{}},
	}
	for _, f := range conversion.Judge([]conversion.Trip{trip}, func(string, string) bool { return false }) {
		c.lossy(f)
	}
	findings := c.result.Report.Findings
	if len(findings) != 1 || findings[0].Reproduced != 2 || findings[0].Scenario != "ship-sea-example-com-v1-to-v2" {
		t.Fatalf("%+v", findings)
	}
	sc := c.result.Scenarios[findings[0].Scenario]
	if sc == nil || sc.Validate() != nil || sc.Steps[0].Apply[0].Object["kind"] != "Ship" {
		t.Errorf("%+v", sc)
	}
}

func TestOnlyAConversionThatLostNothingInAnyRunCountsAsTried(t *testing.T) {
	c := converting(t, "life", nil)
	lost := func(name string) []conversion.Finding {
		return []conversion.Finding{{Finding: judge.Finding{Scenario: name}}}
	}
	c.converts([]string{"a", "b", "c"}, lost("a"), lost("c"))
	if !slices.Equal(c.result.Converted, []string{"b"}) {
		t.Errorf("%q", c.result.Converted)
	}
}

func TestTheKindsShareATwentiethOfTheBudget(t *testing.T) {
	for _, test := range []struct {
		budget      time.Duration
		kinds, labs int
		want        time.Duration
	}{
		{0, 5, 2, longestConversions},
		{time.Hour, 1, 2, longestConversions},
		{2 * time.Minute, 1, 4, 6 * time.Second},
		{2 * time.Minute, 3, 1, 2 * time.Second},
		{2 * time.Minute, 3, 2, 4 * time.Second},
	} {
		if got := timeToConvert(test.budget, test.kinds, test.labs); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}
