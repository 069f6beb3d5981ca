package judge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// learnt learns a reference from three runs of the same story, and returns the verdicts and
// the notes about objects that outlived their resource.
func learnt(t *testing.T, sc *scenario.Scenario, story func(*story)) (found, notes string) {
	t.Helper()
	var runs []*evidence.Run
	for range 3 {
		s := tell(t)
		story(s)
		runs = append(runs, s.end())
	}
	sc.Name = "s"
	r, err := NewReference(sc, runs)
	if err != nil {
		t.Fatal(err)
	}
	return verdicts(Faultless(r, runs, nil)), strings.Join(Outlived(r, runs, nil), "\n")
}

func TestTheEntriesOfAHistoryMayDependOnThePath(t *testing.T) {
	sc := scene()
	sc.Steps = []scenario.Step{{Name: "a"}, {Name: "b"}, {Name: "back", SameAs: "a"}}
	entry := func(kind, name, body string) string {
		return kind + " default/" + name + ` {"metadata":{"owner:Widget.x default/w"},` + body + `}`
	}
	annotated := func(name, number string) string {
		return `Request.x default/` + name + ` {"metadata":{"annotations":{"x.example.com/widget-revision":"` + number + `"},"owner:Widget.x default/w"},"spec":{"n":` + number + `}}`
	}
	for name, tt := range map[string]struct {
		story func(*story)
		want  string
	}{
		"the revision is an annotation": {func(s *story) {
			s.step("a").puts(driver, widget).puts(one, annotated("w-1", "1"))
			s.step("b").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).puts(one, annotated("w-2", "2")).deletes(one, "Request.x default/w-1")
			s.step("back").puts(driver, widget).puts(one, annotated("w-3", "3")).deletes(one, "Request.x default/w-2")
		}, ""},
		"the attempt is a field": {func(s *story) {
			s.step("a").puts(driver, widget).puts(one, entry("Try.x", "w-v1", `"spec":{"attempt":1}`))
			s.step("b").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).puts(one, entry("Try.x", "w-v2", `"spec":{"attempt":2}`))
			s.step("back").puts(driver, widget).puts(one, entry("Try.x", "w-v3", `"spec":{"attempt":3}`))
		}, ""},
		"replicas with numbers": {func(s *story) {
			s.step("a").puts(driver, widget).puts(one, entry("Worker.x", "worker-0", `"spec":{"index":0}`)).puts(one, entry("Worker.x", "worker-1", `"spec":{"index":1}`))
			s.step("b").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).deletes(one, "Worker.x default/worker-1")
			s.step("back").puts(driver, widget)
		}, "PATH DEPENDENT"},
		"replicas of the same revision": {func(s *story) {
			s.step("a").puts(driver, widget).puts(one, entry("Worker.x", "worker-0", `"spec":{"revision":1}`)).puts(one, entry("Worker.x", "worker-1", `"spec":{"revision":1}`))
			s.step("b").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).deletes(one, "Worker.x default/worker-1")
			s.step("back").puts(driver, widget)
		}, "PATH DEPENDENT"},
		"what a status observes is no number of the object": {func(s *story) {
			s.step("a").puts(driver, widget).puts(one, entry("Worker.x", "worker-1", `"status":{"observedRevision":1}`))
			s.step("b").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).deletes(one, "Worker.x default/worker-1")
			s.step("back").puts(driver, widget)
		}, "PATH DEPENDENT"},
		"a number at the end of a hash": {func(s *story) {
			s.step("a").puts(driver, widget).puts(one, entry("Set.x", "w-7cf1", `"spec":{"revision":1}`))
			s.step("b").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).deletes(one, "Set.x default/w-7cf1")
			s.step("back").puts(driver, widget)
		}, "PATH DEPENDENT"},
		"an entry that another client made": {func(s *story) {
			s.step("a").puts(driver, widget).puts(driver, annotated("w-1", "1"))
			s.step("b").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).deletes(one, "Request.x default/w-1")
			s.step("back").puts(driver, widget)
		}, "PATH DEPENDENT"},
	} {
		if got, _ := learnt(t, sc, tt.story); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}

func TestTheNumberOfARevisionMayAppear(t *testing.T) {
	sc := scene()
	sc.Steps = []scenario.Step{{Name: "a"}, {Name: "b"}, {Name: "back", SameAs: "a"}}
	for field, want := range map[string]string{"revision": "", "failedAttempts": "", "readyReplicas": "PATH DEPENDENT"} {
		got, _ := learnt(t, sc, func(s *story) {
			s.step("a").puts(driver, widget).puts(one, `Widget.x default/w {"spec":{"n":1},"status":{"phase":"new"}}`)
			s.step("b").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
			s.step("back").puts(driver, widget).puts(one, fmt.Sprintf(`Widget.x default/w {"spec":{"n":1},"status":{"phase":"new",%q:1}}`, field))
		})
		if got != want {
			t.Errorf("%s: %q, not %q", field, got, want)
		}
	}
}

func TestGeneratedCredentialsMayBeKeptOnTheWayBack(t *testing.T) {
	sc := scene()
	sc.Steps = []scenario.Step{{Name: "a"}, {Name: "b"}, {Name: "back", SameAs: "a"}}
	for name, tt := range map[string]struct {
		secret func(s *story) string
		status string
		want   string
	}{
		"generated":             {func(s *story) string { return `Secret default/k {"data":{"key":"` + s.value(1) + `"}}` }, `{"phase":"new","account":{}}`, ""},
		"the same in each run":  {func(*story) string { return `Secret default/k {"data":{"key":"fixed"}}` }, `{"phase":"new"}`, "PATH DEPENDENT"},
		"another kind":          {func(s *story) string { return `ConfigMap default/k {"data":{"key":"` + s.value(1) + `"}}` }, `{"phase":"new"}`, "PATH DEPENDENT"},
		"a status with content": {func(s *story) string { return `Secret default/k {"data":{"key":"` + s.value(1) + `"}}` }, `{"phase":"new","account":{"uri":"x"}}`, "PATH DEPENDENT"},
	} {
		var runs []*evidence.Run
		for range 3 {
			s := tell(t)
			s.step("a").puts(driver, widget).puts(one, `Widget.x default/w {"spec":{"n":1},"status":{"phase":"new"}}`)
			s.step("b").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).puts(one, tt.secret(s))
			s.step("back").puts(driver, widget).puts(one, `Widget.x default/w {"spec":{"n":1},"status":`+tt.status+`}`)
			runs = append(runs, s.end())
		}
		r, err := NewReference(sc, runs)
		if err != nil {
			t.Fatal(err)
		}
		if got := verdicts(Faultless(r, runs, nil)); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
		if notes := Kept(r, runs, nil); tt.want == "" && (len(notes) != 1 || !strings.Contains(notes[0], "Secret default/k is kept after step back")) {
			t.Errorf("%s: the notes are %q", name, notes)
		}
	}
}

func TestWhatFollowsFromAnObjectThatOutlivedItsResourceIsOnlyNoted(t *testing.T) {
	ref := scenario.ObjectRef{APIVersion: "x/v1", Kind: "Widget", Namespace: "default", Name: "w"}
	sc := scene()
	sc.Steps = []scenario.Step{{Name: "create"}, {Name: "delete", Delete: &scenario.Delete{ObjectRef: ref}}, {Name: "again", SameAs: "create"}}
	secret := `Secret default/w-key {"metadata":{"labels":{"widget":"w"}},"data":{"a":"1"}}`
	request := `Request.x default/r {"metadata":{"owner:Widget.x default/w"}}`
	done := func(status string) string { return `Widget.x default/w {"spec":{"n":1},"status":{` + status + `}}` }
	life := func(s *story, step string) *story { return s.step(step).puts(driver, widget) }
	gone := func(s *story) {
		s.step("delete").deletes(driver, "Widget.x default/w").deletes(driver, "Request.x default/r")
	}
	for name, tt := range map[string]struct {
		story func(*story)
		want  string
		noted bool
	}{
		"less is made, and the status says so": {func(s *story) {
			life(s, "create").puts(one, secret).puts(one, request).puts(one, done(`"requests":1`))
			gone(s)
			life(s, "again")
		}, "", true},
		"nothing outlived the resource": {func(s *story) {
			life(s, "create").puts(one, secret).puts(one, request)
			gone(s)
			s.deletes(one, "Secret default/w-key")
			life(s, "again").puts(one, secret)
		}, "PATH DEPENDENT", false},
		"what outlived the resource is not the controller's": {func(s *story) {
			life(s, "create").puts(driver, secret).puts(one, request)
			gone(s)
			life(s, "again")
		}, "PATH DEPENDENT", false},
		"what outlived the resource does not belong to it": {func(s *story) {
			life(s, "create").puts(one, `Secret default/ca {"data":{"a":"1"}}`).puts(one, request)
			gone(s)
			life(s, "again")
		}, "PATH DEPENDENT", false},
		"its content is of the earlier life": {func(s *story) {
			life(s, "create").puts(one, secret)
			gone(s)
			life(s, "again").puts(one, strings.Replace(secret, `"a":"1"`, `"a":"2"`, 1))
		}, "PATH DEPENDENT", false},
		"an object is extra": {func(s *story) {
			life(s, "create").puts(one, secret)
			gone(s)
			life(s, "again").puts(one, `Request.x default/more {}`)
		}, "PATH DEPENDENT", false},
		"a condition has another status": {func(s *story) {
			ready := func(status string) string { return done(`"conditions":[{"type":"Ready","status":"` + status + `"}]`) }
			life(s, "create").puts(one, secret).puts(one, ready("True"))
			gone(s)
			life(s, "again").puts(one, ready("False"))
		}, "PATH DEPENDENT", false},
		"the result is another one, and less is made": {func(s *story) {
			life(s, "create").puts(one, secret).puts(one, request).puts(one, done(`"phase":"Ready"`))
			gone(s)
			life(s, "again").puts(one, done(`"phase":"Failed"`))
		}, "PATH DEPENDENT", false},
		"the survivor is deleted later": {func(s *story) {
			life(s, "create").puts(one, secret)
			gone(s)
			life(s, "again").deletes(one, "Secret default/w-key")
		}, "PATH DEPENDENT", false},
	} {
		got, notes := learnt(t, sc, tt.story)
		if got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
		if noted := strings.Contains(notes, "Secret default/w-key outlives the deletion of Widget.x default/w"); noted != tt.noted {
			t.Errorf("%s: the notes are %q", name, notes)
		}
	}
}

func TestAStatusThatASurvivorMadeUnnecessaryMayAppearLater(t *testing.T) {
	ref := scenario.ObjectRef{APIVersion: "x/v1", Kind: "Widget", Namespace: "default", Name: "w"}
	sc := scene()
	sc.Steps = []scenario.Step{{Name: "create"}, {Name: "delete", Delete: &scenario.Delete{ObjectRef: ref}}, {Name: "again"}, {Name: "change"}, {Name: "back", SameAs: "again"}}
	for name, tt := range map[string]struct{ before, after, want string }{
		"it appears": {`{}`, `{"request":"r"}`, ""},
		"it changes": {`{"request":"q"}`, `{"request":"r"}`, "PATH DEPENDENT"},
	} {
		got, notes := learnt(t, sc, func(s *story) {
			s.step("create").puts(driver, widget).puts(one, `Secret default/w-key {"metadata":{"labels":{"widget":"w"}}}`)
			s.step("delete").deletes(driver, "Widget.x default/w")
			s.step("again").puts(driver, widget).puts(one, `Widget.x default/w {"spec":{"n":1},"status":`+tt.before+`}`)
			s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
			s.step("back").puts(driver, widget).puts(one, `Widget.x default/w {"spec":{"n":1},"status":`+tt.after+`}`)
		})
		if got != tt.want || (notes != "") != (tt.want == "") {
			t.Errorf("%s: %q, not %q; the notes are %q", name, got, tt.want, notes)
		}
	}
}

func TestAfterAFaultTheNewestEntryOfAHistoryIsCompared(t *testing.T) {
	key := 0 // differs in each entry of each run
	entry := func(number int, colour string) string {
		key++
		return fmt.Sprintf(`Request.x default/w-%d {"metadata":{"annotations":{"x.example.com/revision":"%d"},"owner:Widget.x default/w"},"spec":{"colour":%q,"key":"key-%d","text":"this is w-%d"}}`, number, number, colour, key, number)
	}
	secret := `Secret default/s {"metadata":{"owner:Widget.x default/w"}}`
	begin := func(s *story) *story {
		return s.step("create").puts(driver, widget).puts(one, secret).puts(one, entry(1, "red")).puts(one, `Widget.x default/w {"spec":{"n":1},"status":{"latestName":"w-1","revision":1}}`)
	}
	second := func(s *story) *story {
		return s.puts(one, secret).puts(one, `Widget.x default/w {"spec":{"n":1},"status":{"latestName":"w-2","revision":2}}`)
	}
	gone := func(s *story, number int) {
		s.step(deleted).deletes(driver, "Widget.x default/w").deletes(driver, "Secret default/s").deletes(driver, fmt.Sprintf("Request.x default/w-%d", number))
	}
	r := reference(t, scene(), func(s *story) { gone(begin(s), 1) })
	for name, tt := range map[string]struct {
		after func(*story)
		want  string
	}{
		"it goes with its owner": {func(s *story) {
			second(s).puts(one, entry(2, "red")).deletes(one, "Request.x default/w-1").rest()
			gone(s, 2)
		}, ""},
		"another entry takes its place": {func(s *story) { second(s).puts(one, entry(2, "red")).deletes(one, "Request.x default/w-1") }, ""},
		"both entries stay":             {func(s *story) { second(s).puts(one, entry(2, "red")) }, ""},
		"the newest is different":       {func(s *story) { second(s).puts(one, entry(2, "blue")) }, "DIVERGED"},
		"the status names an older one": {func(s *story) {
			second(s).puts(one, entry(2, "red")).puts(one, `Widget.x default/w {"spec":{"n":1},"status":{"latestName":"w-1","revision":2}}`)
		}, "DIVERGED"},
		"none is left": {func(s *story) { second(s).deletes(one, "Request.x default/w-1") }, "DIVERGED"},
	} {
		s := begin(tell(t)).deletes(driver, "Secret default/s")
		tt.after(s)
		if tt.want != "" {
			s.healed(evidence.Never)
		}
		run := s.after(do(fault.DeleteChild, "create", "Secret/default/s"))
		if left := len(r.Differences("create", newInput(r, run, nil).world("create", run.Steps[0].Rested))) > 0; left != (tt.want != "") {
			t.Errorf("%s: the state is wrong: %v", name, left)
		}
		if got := verdicts(Judge(r, run, nil)); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}

func TestWhatStaysOfAFieldIsWhatHoldsItsText(t *testing.T) {
	sc := scene()
	sc.Name = "s"
	sc.Steps = []scenario.Step{{Name: "create"}, {Name: "mark"}, {Name: "back", SameAs: "create"}}
	labels := func(name, text string) string {
		return "Service default/" + name + ` {"metadata":{"labels":{` + text + `},"owner:Widget.x default/w"}}`
	}
	s := tell(t)
	s.step("create").puts(driver, widget).puts(one, labels("a", "")).puts(one, labels("b", ""))
	s.step("mark").puts(one, labels("a", `"m001":"m001-a"`)).puts(one, labels("b", `"m001":"m001-a","m002":"m002-a"`))
	s.step("back").puts(one, labels("a", `"m001":"m001-a"`)).puts(one, labels("b", `"m001":"m001-a"`)).
		puts(one, labels("c", `"m001":"m001-a"`)).puts(one, labels("d", ""))
	found, err := Staying([]string{"m001", "m002"}, sc, s.end(), nil, func(object string) bool { return object != "Service default/b" })
	if err != nil {
		t.Fatal(err)
	}
	want := []state.Difference{{Object: "Service default/a", Path: "metadata.labels", Got: `{"m001":"m001-a"}`}, {Object: "Service default/c"}}
	f := found[0]
	if f == nil || f.Verdict != PathDependent || f.Step != "back" || len(f.Differences) != len(want) {
		t.Fatalf("the finding about the text that stays is %+v", f)
	}
	f.Differences[1].Got = "" // the whole object
	if !slices.Equal(f.Differences, want) {
		t.Errorf("the differences are %+v, want %+v", f.Differences, want)
	}
	if found[1] != nil {
		t.Errorf("a text that is gone is found: %+v", found[1])
	}
}
