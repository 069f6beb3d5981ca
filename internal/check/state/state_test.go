package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// parse makes a snapshot from objects in JSON.
func parse(t *testing.T, objects ...string) Snapshot {
	t.Helper()
	s := Snapshot{}
	for _, text := range objects {
		var object Object
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		group, _, found := strings.Cut(object["apiVersion"].(string), "/")
		if !found {
			group = ""
		}
		s[Ref{schema.GroupKind{Group: group, Kind: object["kind"].(string)}, object.Metadata("namespace"), object.Metadata("name")}] = object
	}
	return s
}

func configMap(name, extra string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":%q%s`, name, extra)
}

func uid(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// learn learns from snapshots of one step.
func learn(runs ...Snapshot) *Mask {
	var all []map[string]Snapshot
	for _, run := range runs {
		all = append(all, map[string]Snapshot{"step": run})
	}
	return Learn(all, nil, nil)
}

func TestAtHoldsWhatIsNotAsInTheBaseline(t *testing.T) {
	old := parse(t, configMap("kept", `},"data":{"a":"1"}}`), configMap("gone", `}}`), configMap("touched", `,"resourceVersion":"1"}}`))
	ref := func(name string) Ref { return Ref{schema.GroupKind{Kind: "ConfigMap"}, "default", name} }
	after := parse(t, configMap("touched", `,"resourceVersion":"9","annotations":{"check.koboshi.dev/touched":"1"}}}`))[ref("touched")]
	fresh := parse(t, configMap("new", `}}`))[ref("new")]
	h := History{Baseline: old, Changes: []Change{
		{Revision: 2, Ref: ref("gone"), Op: Deleted, Before: old[ref("gone")]},
		{Revision: 3, Ref: ref("touched"), Op: Updated, Before: old[ref("touched")], After: after},
		{Revision: 4, Ref: ref("new"), Op: Created, After: fresh},
		{Revision: 5, Ref: ref("new"), Op: Deleted, Before: fresh},
	}}
	want := Snapshot{ref("gone"): nil, ref("new"): fresh}
	if d := cmp.Diff(want, h.At(4)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Snapshot{ref("gone"): nil}, h.At(9)); d != "" {
		t.Error(d)
	}
	if h.Changes[1].Effective() || !h.Changes[0].Effective() {
		t.Error("a mark of the checker and a version are no effective write; a deletion is")
	}
}

func TestTheSameWorldInAnotherRunHasNoDifference(t *testing.T) {
	run := func(n int, suffix, hash, moment string) Snapshot {
		return parse(t,
			fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"web","uid":%q,"resourceVersion":"%d","generation":%d},
				"spec":{"template":{"spec":{"volumes":[{"name":"v","secret":{"secretName":"key-%s"}}]}}},"status":{"observedGeneration":%d,"conditions":[{"type":"Available","lastUpdateTime":%q}]}}`,
				uid(n), n, n, suffix, n, moment),
			fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"namespace":"default","name":"web-%s","uid":%q,"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":%q,"controller":true}]},"spec":{"replicas":1,"selector":{"matchLabels":{"pod-template-hash":%q}}}}`,
				hash, uid(n+1), uid(n), hash),
			fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"web-%s-%s","generateName":"web-%s-","uid":%q,"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-%s","uid":%q,"controller":true}]},"spec":{"nodeName":"node-%d"},"status":{"podIP":"10.0.0.%d"}}`,
				hash, suffix, hash, uid(n+2), hash, uid(n+1), n, n),
			fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"default","name":"key-%s","generateName":"key-"}}`, suffix),
			configMap("note", fmt.Sprintf(`},"data":{"pod":"web-%s-%s at 10.0.0.%d:80","owner":%q}}`, hash, suffix, n, uid(n))),
			fmt.Sprintf(`{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"default","name":"web.%d"}}`, n),
			fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":"default","name":"leader-%d"}}`, n),
		)
	}
	var m *Mask
	a := m.Canonical(run(10, "abcde", "7d9f8c6b5", "2026-01-02T03:04:05Z"))
	b := m.Canonical(run(40, "vwxyz", "5b6c8f9d7", "2026-01-02T03:04:59.123456Z"))
	if d := a.Diff(b); len(d) > 0 {
		t.Errorf("differences: %+v", d)
	}
	if a.Hash() != b.Hash() {
		t.Error("the hashes differ")
	}
	want := []string{"ConfigMap default/note", "Deployment.apps default/web", "Pod default/web-*-*", "ReplicaSet.apps default/web-*", "Secret default/key-*"}
	if d := cmp.Diff(want, sortedKeys(a.Objects)); d != "" {
		t.Error(d)
	}
	note := a.Objects["ConfigMap default/note"][0].(map[string]any)["data"].(map[string]any)
	if note["owner"] != "uid:Deployment.apps default/web" || note["pod"] != "web-*-* at ip:Pod default/web-*-*:80" {
		t.Errorf("names within: %v", note)
	}
}

func TestAUIDOfWhatNoLongerLivesIsADifference(t *testing.T) {
	child := configMap("child", `,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"parent","uid":"`+uid(1)+`"}]}}`)
	var m *Mask
	want := m.Canonical(parse(t, child, configMap("parent", `,"uid":"`+uid(1)+`"}}`)))
	got := m.Canonical(parse(t, child, configMap("parent", `,"uid":"`+uid(2)+`"}}`)))
	d := want.Diff(got)
	if len(d) != 1 || d[0].Got != `"uid:unknown"` || d[0].Want != `"uid:ConfigMap default/parent"` {
		t.Errorf("%+v", d)
	}
}

func TestDifferencesAreOneLineForEachField(t *testing.T) {
	var m *Mask
	want := m.Canonical(parse(t, configMap("a", `},"data":{"x":"1","y":"2"},"list":[{"name":"p","v":1},{"name":"q","v":2}]}`), configMap("b", `}}`)))
	got := m.Canonical(parse(t, configMap("a", `},"data":{"x":"1","y":"3"},"list":[{"name":"p","v":1},{"name":"q","v":9}]}`),
		configMap("c", `},"data":{"long":"`+strings.Repeat("x", 100)+`"}}`)))
	d := want.Diff(got)
	var lines []string
	for _, x := range d {
		lines = append(lines, x.Object+" "+x.Path+" "+x.Want+" "+x.Got)
		if len([]rune(x.Got)) > 60 {
			t.Errorf("%q is too long", x.Got)
		}
	}
	expected := []string{
		`ConfigMap default/a data.y "2" "3"`,
		`ConfigMap default/a list[q].v 2 9`,
		`ConfigMap default/b  {"metadata":{}} `,
	}
	if diff := cmp.Diff(expected, lines[:3]); diff != "" || len(lines) != 4 {
		t.Error(diff, lines)
	}
}

func TestOrderCountsUnlessItDiffersWithoutAFault(t *testing.T) {
	list := func(items string) Snapshot { return parse(t, configMap("a", `},"items":`+items+`}`)) }
	var none *Mask
	if d := none.Canonical(list(`["a","b"]`)).Diff(none.Canonical(list(`["b","a"]`))); len(d) != 1 {
		t.Errorf("order is lost: %+v", d)
	}
	m := learn(list(`["a","b"]`), list(`["b","a"]`), list(`["a","b"]`))
	if d := m.Canonical(list(`["a","b"]`)).Diff(m.Canonical(list(`["b","a"]`))); len(d) != 0 {
		t.Errorf("order still counts: %+v", d)
	}
	if d := m.Canonical(list(`["a","b"]`)).Diff(m.Canonical(list(`["b","c"]`))); len(d) == 0 {
		t.Error("another element is no difference")
	}
	if d := cmp.Diff([]string{"ConfigMap default/a items after step step (order)"}, m.Fields()); d != "" {
		t.Error(d)
	}
}

func TestRandomValuesAreComparedByTheirEquality(t *testing.T) {
	run := func(password, copied string) Snapshot {
		return parse(t, configMap("a", `},"data":{"password":"`+password+`"}}`), configMap("b", `},"data":{"copy":"`+copied+`"}}`))
	}
	m := learn(run("x1", "x1"), run("y2", "y2"), run("z3", "z3"))
	want := m.Canonical(run("x1", "x1"))
	if d := want.Diff(m.Canonical(run("new", "new"))); len(d) != 0 {
		t.Errorf("a fresh password is a difference: %+v", d)
	}
	if d := want.Diff(m.Canonical(run("new", "old"))); len(d) == 0 {
		t.Error("a copy of another password is no difference")
	}
	unequal := learn(run("x1", "x1"), run("y2", "q"), run("z3", "z3"))
	if d := unequal.Canonical(run("x", "x")).Diff(unequal.Canonical(run("x", "y"))); len(d) != 0 {
		t.Errorf("an equality that does not always hold is compared: %+v", d)
	}
}

func TestWhatDiffersWithoutAFaultIsMasked(t *testing.T) {
	run := func(name, status string) Snapshot {
		return parse(t, configMap("a", `},"status":`+status+`}`), configMap(name, `},"data":{"k":"v"}}`),
			configMap("user", `},"data":{"ref":"`+name+`"}}`), configMap("job-config", `}}`))
	}
	m := learn(
		run("job-a1b2c", `{"count":1,"conditions":[{"type":"Ready","n":1}]}`),
		run("job-d3e4f", `{"count":2,"seen":true,"conditions":[{"type":"Ready","n":1}]}`),
		run("job-g5h6i", `{"count":3,"conditions":[{"type":"Ready","n":1},{"type":"Slow"}]}`))
	want := []string{"ConfigMap default/a status.conditions[Slow] after step step", "ConfigMap default/a status.count after step step",
		"ConfigMap default/a status.seen after step step", "ConfigMap metadata.name (job-*)"}
	if d := cmp.Diff(want, m.Fields()); d != "" {
		t.Error(d)
	}
	world := m.Canonical(run("job-a1b2c", `{"count":1,"conditions":[{"type":"Ready","n":1}]}`))
	for name, tt := range map[string]struct {
		got  Snapshot
		want int
	}{
		"other random values":        {run("job-zzzzz", `{"count":7,"conditions":[{"type":"Slow"},{"type":"Ready","n":1}]}`), 0},
		"another type":               {run("job-zzzzz", `{"count":"7","conditions":[{"type":"Ready","n":1}]}`), 1},
		"a condition that differs":   {run("job-zzzzz", `{"count":7,"conditions":[{"type":"Ready","n":2}]}`), 1},
		"a name that does not match": {run("work-zzzzz", `{"count":7,"conditions":[{"type":"Ready","n":1}]}`), 3},
	} {
		t.Run(name, func(t *testing.T) {
			if d := world.Diff(m.Canonical(tt.got)); len(d) != tt.want {
				t.Errorf("%d differences, want %d: %+v", len(d), tt.want, d)
			}
		})
	}
}

func TestADuplicateOfAGeneratedChildIsOneObjectTooMuch(t *testing.T) {
	child := func(suffix string) string { return configMap("run-"+suffix, `,"generateName":"run-"}}`) }
	var m *Mask
	want := m.Canonical(parse(t, child("aaaaa"), child("bbbbb")))
	if d := want.Diff(m.Canonical(parse(t, child("ccccc"), child("ddddd")))); len(d) != 0 {
		t.Errorf("%+v", d)
	}
	d := want.Diff(m.Canonical(parse(t, child("a1111"), child("b2222"), child("c3333"))))
	if len(d) != 1 || d[0].Object != "ConfigMap default/run-*" || d[0].Path != "" || d[0].Want != "" {
		t.Errorf("%+v", d)
	}
	if found := m.Find(parse(t, child("bbbbb"), child("aaaaa")), "ConfigMap/default/run-*"); len(found) != 2 || found[0].Name != "run-aaaaa" {
		t.Errorf("found %v", found)
	}
}

func TestTheScenariosIgnoreIsFollowed(t *testing.T) {
	a := parse(t, configMap("a", `,"annotations":{"example.com/seen":"1"}},"status":{"list":[{"x":1,"y":1}]}}`))
	b := parse(t, configMap("a", `,"annotations":{"example.com/seen":"2"}},"status":{"list":[{"x":2,"y":1}]}}`))
	for name, tt := range map[string]struct {
		ignore []string
		want   int
	}{
		"nothing":          {nil, 2},
		"a field":          {[]string{"ConfigMap status.list[].x"}, 1},
		"any kind":         {[]string{"* status.list[*].x"}, 1},
		"an annotation":    {[]string{"ConfigMap metadata.annotations[example.com/seen]"}, 1},
		"all annotations":  {[]string{"ConfigMap metadata.annotations"}, 1},
		"each annotation":  {[]string{"ConfigMap metadata.annotations.*"}, 1},
		"some annotations": {[]string{"ConfigMap metadata.annotations.example.*"}, 1},
		"other ones":       {[]string{"ConfigMap metadata.annotations.sample.*"}, 2},
		"a part of a path": {[]string{"ConfigMap status.*"}, 1},
		"another kind":     {[]string{"Secret status"}, 2},
		"all of a kind":    {[]string{"ConfigMap"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Mask{Configured: tt.ignore}
			if d := m.Canonical(a).Diff(m.Canonical(b)); len(d) != tt.want {
				t.Errorf("%d differences, want %d: %+v", len(d), tt.want, d)
			}
		})
	}
}

func TestTheCheckersMarksAreNotSeen(t *testing.T) {
	var m *Mask
	bare := m.Canonical(parse(t, configMap("a", `}}`)))
	marked := m.Canonical(parse(t, configMap("a", `,"annotations":{"check.koboshi.dev/touched":"1"},"finalizers":["check.koboshi.dev/hold"]}}`)))
	if d := bare.Diff(marked); len(d) != 0 {
		t.Errorf("%+v", d)
	}
}

func TestAnOlderGenerationIsADifferenceAndANewerOneIsNot(t *testing.T) {
	var m *Mask
	at := func(observed int) World {
		return m.Canonical(parse(t, configMap("a", fmt.Sprintf(`,"generation":3},"status":{"observedGeneration":%d}}`, observed))))
	}
	if d := at(3).Diff(at(2)); len(d) != 1 {
		t.Errorf("a status that is behind: %+v", d)
	}
	if d := at(2).Diff(at(3)); len(d) != 0 {
		t.Errorf("a status that is up to date: %+v", d)
	}
}

func TestMaskAndWorldSurviveJSON(t *testing.T) {
	run := func(v, name string) Snapshot {
		return parse(t, configMap("a", `},"data":{"v":"`+v+`","n":5}}`), configMap(name, `}}`))
	}
	m := learn(run("1", "x-aaaa1"), run("2", "x-aaaa2"), run("3", "x-aaaa3"))
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var again Mask
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	world := m.Canonical(run("1", "x-aaaa1"))
	data, _ = json.Marshal(world)
	var read World
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if d := read.Diff(again.Canonical(run("9", "x-aaaa9"))); len(d) != 0 || read.Hash() != world.Hash() {
		t.Errorf("%+v", d)
	}
	if !slices.Equal(again.Fields(), m.Fields()) {
		t.Error("the fields differ")
	}
}

func TestABodyHasTheSameHashInEveryRun(t *testing.T) {
	run := func(v string) Snapshot {
		return parse(t, configMap("a", `},"data":{"v":"`+v+`"}}`), configMap("tmp-"+v, `,"generateName":"tmp-"}}`))
	}
	m := learn(run("aaaaa"), run("bbbbb"), run("ccccc"))
	target := trace.Target{Version: "v1", Resource: "configmaps", Namespace: "default", Name: "a"}
	body := func(text string) map[string]any {
		var out map[string]any
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	one := Body(m, target, body(`{"metadata":{"resourceVersion":"1"},"data":{"v":"aaaaa","ref":"tmp-qwert","at":"2026-01-01T00:00:00Z"}}`))
	two := Body(m, target, body(`{"metadata":{"resourceVersion":"2"},"data":{"v":"xyzzy","ref":"tmp-asdfg","at":"2026-01-01T00:00:09Z"}}`))
	if one != two || one == "" {
		t.Errorf("%q and %q", one, two)
	}
	if other := Body(m, target, body(`{"data":{"v":"x","ref":"none","at":"2026-01-01T00:00:09Z"}}`)); other == one {
		t.Error("another reference has the same hash")
	}
	if got := m.Name("default", "tmp-qwert", "configmaps"); got != "default/tmp-*" {
		t.Errorf("name %q", got)
	}
	if Body(nil, target, nil) != "" {
		t.Error("no body has a hash")
	}
}

func TestTheOrderOfThePortsOfAServiceIsNoDifference(t *testing.T) {
	var m *Mask
	service := func(ports string) World {
		return m.Canonical(parse(t, `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"default","name":"a"},"spec":{"ports":[`+ports+`]}}`))
	}
	amqp, http := `{"name":"amqp","port":5672,"nodePort":30001}`, `{"name":"http","port":80,"nodePort":30002}`
	if d := service(amqp + "," + http).Diff(service(http + "," + amqp)); len(d) != 0 {
		t.Errorf("%+v", d)
	}
	if d := service(amqp + "," + http).Diff(service(amqp)); len(d) == 0 {
		t.Error("a missing port is not seen")
	}
}

func TestATouchedHistoryHasOnlyTheObjectsThatChanged(t *testing.T) {
	one, two, three := Ref{Name: "one"}, Ref{Name: "two"}, Ref{Name: "three"}
	h := History{Baseline: Snapshot{one: {}, two: {}}, Changes: []Change{{Ref: one, Op: Updated}, {Ref: three, Op: Created}}}
	got := h.Touched()
	if _, kept := got.Baseline[one]; !kept || len(got.Baseline) != 1 || len(got.Changes) != 2 || len(h.Baseline) != 2 {
		t.Errorf("%v", got)
	}
}
