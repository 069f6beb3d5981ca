package suite

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	nodes, _, err := strictyaml.Documents([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	value, _ := strictyaml.New(nodes[0], nil).Free(nodes[0], "", 0).(map[string]any)
	return value
}

// TestEachLeafIsACondition compares conditions in the form "field = value", "field" or "status".
func TestEachLeafIsACondition(t *testing.T) {
	for _, c := range []struct {
		name, object string
		want, left   []string
	}{
		{"nothing", "metadata: {name: a}", []string{""}, nil},
		{"plain values", "spec: {a: 1, b: x, c: true, d: 1.5}", []string{"spec.a = 1", `spec.b = "x"`, "spec.c = true", "spec.d = 1.5"}, nil},
		{"labels", "metadata: {name: a, labels: {app.kubernetes.io/name: a}}", []string{`metadata.labels.app\.kubernetes\.io/name = "a"`}, nil},
		{"empty values", "spec: {a: {}, b: [], c: ''}", []string{"spec.a", "spec.b = []", `spec.c = ""`}, nil},
		{"list of plain values", "spec: {a: [1, 2]}", []string{"spec.a = [1,2]"}, nil},
		{"items that share fields", "spec: {a: [{n: r, p: 1}, {n: s, p: 2, q: 3}]}",
			[]string{`spec.a[*].n = ["r","s"]`, "spec.a[*].p = [1,2]", "spec.a[1].q = 3"}, nil},
		{"one item", "spec: {a: [{n: x, r: {c: 1}}]}", []string{`spec.a[*].n = ["x"]`, "spec.a[0].r.c = 1"}, nil},
		{"items without a shared field", "spec: {a: [{b: {}}, {c: 1}, {}]}", []string{"spec.a[0].b", "spec.a[1].c = 1", "spec.a[2]"}, nil},
		{"conditions", "status: {conditions: [{type: Ready, status: 'True', reason: Up}, {type: Stuck, status: 'False'}, {type: Seen}]}",
			[]string{"Ready=True", `status.conditions[?(@.type=="Ready")].reason = "Up"`, "Stuck=False", `status.conditions[?(@.type=="Seen")]`}, nil},
		{"conditions without a type", "status: {conditions: [{status: 'True'}]}", []string{`status.conditions[*].status = ["True"]`}, nil},
		{"null", "spec: {a: null, b: 1}", []string{"spec.b = 1"}, []string{"spec.a: a condition cannot require null"}},
		{"a key with braces", "spec: {'{x}': 1, b: 1}", []string{"spec.b = 1"}, []string{"spec.{x}: JSONPath cannot express this path"}},
		{"a key with other characters", "spec: {'a b': 1, 'c[0]': 2, 'd$': 3, '@e': 4, 'f,g': 5}",
			[]string{`spec.\@e = 4`, `spec.a\ b = 1`, `spec.c\[0\] = 2`, `spec.d\$ = 3`, `spec.f\,g = 5`}, nil},
		{"expressions", "spec: {(length(a)): 1, b: (c), d: 2, e: [(f)], ~.g: {h: 1}, i->j: 1, k: [{(l): 1, m: 2}]}",
			[]string{"spec.d = 2", "spec.k[*].m = [2]"}, []string{
				"spec.(length(a)): (length(a)): expressions are not supported", "spec.b: (c): expressions are not supported",
				"spec.e: (f): expressions are not supported", "spec.i->j: i->j: expressions are not supported",
				"spec.k[0].(l): (l): expressions are not supported", "spec.~.g: ~.g: expressions are not supported"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ref := scenario.ObjectRef{APIVersion: "v1", Kind: "Pod", Name: "a"}
			conditions, left := subset(ref, object(t, c.object), true)
			var got, without []string
			for _, found := range conditions {
				text := found.Status + found.Field
				if found.Equals != nil {
					text += " = " + string(found.Equals)
				}
				got = append(got, text)
			}
			for _, l := range left {
				without = append(without, fmt.Sprintf("%s: %s", l.path, l.why))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("conditions:\n%s", diff)
			}
			if diff := cmp.Diff(c.left, without); diff != "" {
				t.Errorf("left out:\n%s", diff)
			}
		})
	}
}

// FuzzConditionsHoldForTheObjectItself checks that a condition never contradicts its source.
func FuzzConditionsHoldForTheObjectItself(f *testing.F) {
	f.Add(`{"spec":{"a.b":[1,{"c":[]}],"x y":"z","status":{"conditions":[{"type":"Ready"}]}}}`)
	f.Add(`{"status":{"conditions":[{"type":"A","status":"True","n":[{"a":1},{"a":2,"b":{}}]},{"type":"A"}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var value map[string]any
		if json.Unmarshal([]byte(text), &value) != nil || value == nil {
			return
		}
		ref := scenario.ObjectRef{APIVersion: "v1", Kind: "Pod", Name: "a"}
		conditions, _ := subset(ref, value, false)
		for _, c := range conditions {
			var want any = map[string]any{}
			if c.Equals != nil && json.Unmarshal(c.Equals, &want) != nil {
				t.Fatalf("%s: not JSON", c.String())
			}
			if c.Field == "" || c.Equals == nil {
				continue
			}
			if !selects(c.Field, value, want) {
				t.Errorf("%s, but the object is %s", c.String(), text)
			}
		}
	})
}

// TestExpectationsAcceptExactlyWhatTheSuiteAsserts checks conditions with the code that a check uses.
func TestExpectationsAcceptExactlyWhatTheSuiteAsserts(t *testing.T) {
	const asserted = `
metadata: {name: a, labels: {app.kubernetes.io/name: a}}
spec: {size: 2, ratio: 0.5, args: [x, 2], ports: [{n: web, p: 80, o: {a: b}}, {n: db, p: 90}], tags: [{n: r}], none: [], empty: {}}
status: {conditions: [{type: Ready, status: "True", reason: Up}]}
`
	const actual = `
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: default, labels: {app.kubernetes.io/name: a, other: b}}
spec: {size: 2, ratio: 0.5, args: [x, 2], ports: [{n: web, p: 80, o: {a: b}, q: 1}, {n: db, p: 90}], tags: [{n: r}], none: [], empty: {a: b}, more: 1}
status: {conditions: [{type: Stuck, status: "False"}, {type: Ready, status: "True", reason: Up, message: m}]}
`
	ref := scenario.ObjectRef{APIVersion: "v1", Kind: "Pod", Name: "a"}
	conditions, left := subset(ref, object(t, asserted), false)
	if len(left) > 0 {
		t.Errorf("left out: %v", left)
	}
	failed := func(text string) []string {
		t.Helper()
		m, err := manifest(object(t, text))
		if err != nil {
			t.Fatal(err)
		}
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
		step := scenario.Step{Name: "a", Expect: conditions}
		return step.Check(t.Context(), scenario.Cluster{
			Client: fake.NewSimpleDynamicClient(runtime.NewScheme(), &unstructured.Unstructured{Object: m.Object}), Mapper: mapper,
		})
	}
	if wrong := failed(actual); len(wrong) > 0 {
		t.Errorf("an object that matches is refused: %q", wrong)
	}
	for _, change := range [][2]string{
		{"name: a, other", "name: b, other"}, {"size: 2", "size: 3"}, {"ratio: 0.5", "ratio: 0.6"}, {"args: [x, 2]", "args: [x]"},
		{"n: web", "n: other"}, {"p: 90", "p: 91"}, {"o: {a: b}", "o: {}"}, {", {n: db, p: 90}]", ", {n: db, p: 90}, {n: more, p: 1}]"},
		{"tags: [{n: r}]", "tags: [{n: r}, {n: s}]"}, {"none: []", "none: [1]"}, {"empty: {a: b}", "e: 1"}, {`type: Ready, status: "True"`, `type: Ready, status: "False"`},
		{"reason: Up", "reason: Down"},
	} {
		other := strings.Replace(actual, change[0], change[1], 1)
		if other == actual {
			t.Fatalf("%q is not in the object", change[0])
		}
		if len(failed(other)) == 0 {
			t.Errorf("%s instead of %s is accepted", change[1], change[0])
		}
	}
}
