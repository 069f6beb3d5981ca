package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/request"
)

const (
	widget  = `Widget.x default/w {"spec":{"n":1}}`
	deleted = "delete"
)

// owned returns a child of the resource.
func owned(name, extra string) string {
	return `ConfigMap default/` + name + ` {"metadata":{` + extra + `"owner:Widget.x default/w"},"data":{"a":"1"}}`
}

// plain builds the story on which all tables in this file are based: a resource, its
// child, an object with a generated name, a lock that is created and deleted, and the
// deletion of everything.
func plain(s *story) {
	s.step("create").puts(driver, widget)
	s.puts(one, `ConfigMap default/lock {}`).puts(one, owned("child", "")).puts(one, generated("run-aaaaa")).deletes(one, "ConfigMap default/lock")
	s.ledger("bucket w")
	s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
	s.puts(one, `Widget.x default/w {"spec":{"n":2},"status":{"n":2}}`)
	s.ledger("bucket w")
	s.step(deleted).deletes(driver, "Widget.x default/w").deletes(driver, "ConfigMap default/child").deletes(driver, "ConfigMap default/run-aaaaa")
	s.ledger()
	s.run.Steps[len(s.run.Steps)-1].Ledger = []string{}
}

func generated(name string) string {
	return owned(name, `"generateName":"run-",`)
}

func scene() *scenario.Scenario {
	ref := scenario.ObjectRef{APIVersion: "x/v1", Kind: "Widget", Namespace: "default", Name: "w"}
	return &scenario.Scenario{Steps: []scenario.Step{
		{Name: "create", Apply: []scenario.Manifest{{Object: map[string]any{"apiVersion": "x/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}}}}},
		{Name: "change"}, {Name: deleted, Delete: &scenario.Delete{ObjectRef: ref}}}}
}

func killedAt(step string) fault.Fault {
	return fault.Fault{Kind: fault.KillLost, Point: fault.Point{Step: step, Verb: "create", Resource: "configmaps", Object: "default/child", Occurrence: 1}}
}

func do(kind fault.Kind, step, target string) fault.Fault {
	return fault.Fault{Kind: kind, Point: fault.Point{Step: step}, Target: target}
}

func cm(name string) state.Ref {
	return state.Ref{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "default", Name: name}
}

func TestEachVerdictHasItsRun(t *testing.T) {
	for name, tt := range map[string]struct {
		fault    fault.Fault
		story    func(s *story)
		want     string
		sentence string
	}{
		"a child that never comes back": {killedAt("create"), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, generated("run-bbbbb")).healed(evidence.Never)
		}, "DIVERGED", "ConfigMap default/child is missing"},
		"a child that comes with a restart": {killedAt("create"), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, generated("run-bbbbb")).help().puts(two, owned("child", "")).healed(evidence.Restart)
		}, "DIVERGED UNTIL RESTART", "until the controller is restarted"},
		"a duplicate": {killedAt("create"), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb")).puts(one, generated("run-ccccc")).healed(evidence.Never)
		}, "DIVERGED", "run-* is an unexpected extra object"},
		"a child deleted and recreated": {killedAt("change"), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb"))
			s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).deletes(two, "ConfigMap default/child").puts(two, owned("child", ""))
			s.puts(two, `Widget.x default/w {"spec":{"n":2},"status":{"n":2}}`)
		}, "DESTRUCTIVE BLIP", "deleted and recreated"},
		"one too many made and deleted": {do(fault.DelayWatch, "create", ""), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb")).puts(one, generated("run-ccccc")).deletes(one, "ConfigMap default/run-bbbbb")
		}, "DESTRUCTIVE BLIP", "run-*"},
		"a child made again in its deletion": {killedAt(deleted), func(s *story) {
			plain(s)
			s.puts(one, `ConfigMap default/child {"data":{"a":"1"}}`).deletes(one, "ConfigMap default/child")
		}, "DESTRUCTIVE BLIP", "is created again while it is being deleted, and then deleted again"},
		"a child left after the deletion": {killedAt(deleted), func(s *story) {
			plain(s)
			s.run.History.Changes = s.run.History.Changes[:len(s.run.History.Changes)-1]
			s.healed(evidence.Never)
		}, "LEAK", "left over"},
		"a resource stuck in its deletion": {killedAt(deleted), func(s *story) {
			s.step(deleted).puts(driver, `Widget.x default/w {"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["x/f"]}}`).healed(evidence.Never)
		}, "DIVERGED", "waits for the finalizer x/f"},
		"an extra bucket": {killedAt("create"), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb")).ledger("bucket w", "bucket w-2")
		}, "LEAK", "bucket w-2"},
		"a panic": {killedAt("create"), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb")).exits(two, 2, "I0101 start\npanic: runtime error: nil\n\ngoroutine 1 [running]:\nmain.main()")
		}, "CRASHED", "panic: runtime error"},
		"an exit without a reason": {killedAt("create"), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb")).exits(two, 1, "Traceback\nKeyError: 'x'")
		}, "CRASHED", "KeyError"},
		"an exit at every start": {killedAt("create"), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb"))
			for _, who := range []string{"controller-2", "controller-3"} {
				s.call(who, "create", cm("child"), 409, 0)
				s.exits(who, 1, "already exists")
			}
		}, "CRASHED", "2 times"},
		"the same write for ever": {killedAt("create"), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb"))
			s.idles(10, 150*time.Millisecond, func(int) { s.call(two, "patch", cm("child"), 200, s.rev) })
		}, "HOT LOOP", "10 times in 150ms"},
		"states that come again and again": {killedAt("create"), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb"))
			for i := range 60 {
				s.puts(one, fmt.Sprintf(`Widget.x default/w {"spec":{"n":1},"status":{"list":[%d,%d]}}`, i%2, 1-i%2))
			}
			s.puts(one, widget)
			s.rest().Restless = true
		}, "HOT LOOP", "does not come to rest"},
		"a finalizer of another client removed": {do(fault.AddFinalizer, "create", "ConfigMap/default/child"), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb"))
			s.puts(driver, owned("child", `"finalizers":["check.koboshi.dev/hold"],`)).puts(one, owned("child", ""))
		}, "DIVERGED", "another client's"},
		"an annotation of another client removed from the resource": {do(fault.Conflict, "create", ""), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb"))
			s.puts(driver, `Widget.x default/w {"metadata":{"annotations":{"check.koboshi.dev/touched":"1"}},"spec":{"n":1}}`).puts(one, widget)
		}, "DIVERGED", "check.koboshi.dev/touched"},
		"another client's write overwritten with an older version": {do(fault.Conflict, "create", ""), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb"))
			s.puts(driver, `Widget.x default/w {"metadata":{"managedFields":[{"manager":"somebody","operation":"Apply"}]},"spec":{"n":1}}`).puts(one, widget)
		}, "DIVERGED", "overwrites another client's write of"},
		"an old leader that writes": {do(fault.LoseLease, "create", ""), func(s *story) {
			leads(leads(right(s), one), two)
			s.at += time.Second
			s.puts(one, owned("child", `"labels":{"x":"y"},`)).puts(two, owned("child", ""))
		}, "SPLIT BRAIN", "the old leader still sends PUT configmaps default/child"},
		"an old leader that writes what the new one has written already": {do(fault.LoseLease, "create", ""), func(s *story) {
			leads(leads(right(s), one), two).puts(two, owned("child", ""))
			s.at += time.Second
			s.call(one, "patch", cm("child"), 200, s.rev)
		}, "SPLIT BRAIN", "the old leader still sends PATCH configmaps default/child"},
		"an old leader that meets a conflict": {do(fault.LoseLease, "create", ""), func(s *story) {
			leads(leads(right(s), one), two).puts(two, owned("child", ""))
			s.at += time.Second
			s.call(one, "update", cm("child"), 409, 0)
		}, "SPLIT BRAIN", "the old leader still sends PUT configmaps default/child"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reference(t, scene(), plain)
			s := tell(t)
			tt.story(s)
			got := Judge(r, s.after(tt.fault), nil)
			if verdicts(got) != tt.want {
				t.Fatalf("%s, want %s: %+v", verdicts(got), tt.want, got)
			}
			f := got[0]
			if !strings.Contains(f.Sentence, tt.sentence) || len([]rune(f.Sentence)) > 240 {
				t.Errorf("sentence %q", f.Sentence)
			}
			if f.ID == "" || f.Step == "" || f.Scenario != "s" || f.LastAction == "" && tt.want != "DIVERGED" {
				t.Errorf("incomplete: %+v", f)
			}
			again := tell(t)
			tt.story(again)
			if second := Judge(r, again.after(tt.fault), nil); second[0].ID != f.ID || !second[0].Same(f) {
				t.Error("the same finding in another run has another ID")
			}
		})
	}
}

// right builds the first step as it should happen.
func right(s *story) *story {
	return s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb"))
}

// leads makes an instance take the Lease.
func leads(s *story, who string) *story {
	return s.puts(who, fmt.Sprintf(`Lease.coordination.k8s.io default/l {"spec":{"holderIdentity":%q}}`, who))
}

func TestWhatIsLegalIsNoFinding(t *testing.T) {
	for name, tt := range map[string]struct {
		fault fault.Fault
		story func(s *story)
	}{
		"nothing else happens": {killedAt("create"), plain},
		"it takes a while":     {killedAt("create"), func(s *story) { right(s).healed(evidence.Wait) }},
		"more retries":         {killedAt("create"), func(s *story) { right(s); s.call(two, "create", cm("child"), 409, 0) }},
		"a lock twice": {killedAt("create"), func(s *story) {
			right(s)
			for range 2 {
				s.puts(two, `ConfigMap default/lock {}`).deletes(two, "ConfigMap default/lock")
			}
		}},
		"an Event": {killedAt("create"), func(s *story) { right(s).puts(two, `Event default/w.123 {}`).deletes(driver, "Event default/w.123") }},
		"a child that we delete": {do(fault.DeleteChild, "create", "ConfigMap/default/child"), func(s *story) {
			right(s).deletes(driver, "ConfigMap default/child").puts(one, owned("child", ""))
		}},
		"a generated child that we delete": {do(fault.DeleteChild, "create", "ConfigMap/default/run-*"), func(s *story) {
			right(s).deletes(driver, "ConfigMap default/run-bbbbb").puts(one, generated("run-ddddd"))
		}},
		"a child whose creation it never knew of, tidied up": {killedAt("create"), func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, generated("run-bbbbb")).killed(one)
			s.puts(two, generated("run-ccccc")).deletes(two, "ConfigMap default/run-bbbbb")
		}},
		"a child made after its owner went, and collected": {do(fault.DelayWatch, deleted, ""), func(s *story) {
			plain(s)
			s.puts(one, `ConfigMap default/late {"metadata":{"ownerReferences":[{"kind":"Widget","name":"w","uid":"00000000-0000-4000-8000-999999999999"}]}}`).deletes(driver, "ConfigMap default/late")
			last := s.rest()
			last.Rested = s.rev
		}},
		"pods of upstream's controllers": {killedAt("create"), func(s *story) {
			pod := `Pod default/p {"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u","controller":true}]}}`
			right(s).puts(driver, pod).deletes(driver, "Pod default/p")
		}},
		"an exit because of an injected error": {do(fault.Error500, "create", ""), func(s *story) {
			right(s)
			s.call(one, "list", cm(""), 500, 0).Injected = true
			s.exits(one, 1, "unable to list")
		}},
		"exits because the API server is away": {do(fault.Outage, "create", ""), func(s *story) {
			right(s).begins("applied")
			s.exits(one, 1, "connection refused").exits(two, 1, "connection refused").begins("ended")
		}},
		"one exit because of a conflict": {do(fault.Conflict, "create", ""), func(s *story) {
			right(s)
			s.call(one, "update", cm("child"), 409, 0)
			s.exits(one, 1, "conflict")
		}},
		"exits because the machine has run out of files": {do(fault.KillAfter, "create", ""), func(s *story) {
			right(s).exits(one, 1, "running the manager: too many open files").exits(one, 1, "running the manager: too many open files")
		}},
		"the exit of an old leader": {do(fault.LoseLease, "create", ""), func(s *story) { right(s).exits(one, 1, "leader election lost") }},
		"a new leader that writes": {do(fault.LoseLease, "create", ""), func(s *story) {
			leads(leads(right(s), one), two)
			s.puts(two, owned("child", `"labels":{"x":"y"},`)).puts(two, owned("child", ""))
		}},
		"an old leader that writes what a standby writes, too": {do(fault.LoseLease, "create", ""), func(s *story) {
			leads(right(s), one)
			s.call(two, "patch", cm("certificates"), 200, s.rev)
			s.at += time.Second
			leads(s, two)
			s.at += time.Second
			s.call(one, "patch", cm("certificates"), 200, s.rev)
		}},
		"it catches up with a few applies": {killedAt("create"), func(s *story) {
			right(s)
			s.idles(4, 150*time.Millisecond, func(int) { s.call(two, "patch", cm("child"), 200, s.rev) })
		}},
		"failing retries that back off": {killedAt("create"), func(s *story) {
			right(s)
			s.idles(9, 150*time.Millisecond, func(int) { s.call(two, "update", cm("child"), 409, 0) })
		}},
		"leader election at rest": {killedAt("create"), func(s *story) {
			right(s)
			lease := cm("l")
			lease.Kind, lease.Group = "Lease", "coordination.k8s.io"
			s.idles(20, 150*time.Millisecond, func(int) { s.call(two, "update", lease, 200, s.rev) })
		}},
		"an annotation of another client removed from a child": {do(fault.Conflict, "create", ""), func(s *story) {
			right(s).puts(driver, owned("child", `"annotations":{"check.koboshi.dev/touched":"1"},`)).puts(one, owned("child", ""))
		}},
		"our finalizer taken off by us": {do(fault.AddFinalizer, "create", "ConfigMap/default/child"), func(s *story) {
			right(s).puts(driver, owned("child", `"finalizers":["check.koboshi.dev/hold"],`)).puts(driver, owned("child", ""))
		}},
		"a step over which watches are held": {fault.Fault{Kind: fault.LoseStates, Point: fault.Point{Step: "create", Resource: "widgets.x"}, Until: "change"}, func(s *story) {
			s.step("create").puts(driver, widget)
			s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).puts(one, owned("child", "")).puts(one, generated("run-bbbbb"))
			s.puts(one, `ConfigMap default/lock {}`).deletes(one, "ConfigMap default/lock")
			s.puts(one, `Widget.x default/w {"spec":{"n":2},"status":{"n":2}}`)
		}},
		"an inconclusive run": {killedAt("create"), func(s *story) {
			s.step("create").healed(evidence.Never)
			s.run.Inconclusive = "it still changed"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := reference(t, scene(), plain)
			s := tell(t)
			tt.story(s)
			if got := Judge(r, s.after(tt.fault), nil); len(got) > 0 {
				t.Errorf("%s: %s %+v", verdicts(got), got[0].Sentence, got[0].Differences)
			}
		})
	}
}

func TestAPasswordThatIsMadeAnewIsFound(t *testing.T) {
	story := func(first, second string) func(*story) {
		return func(s *story) {
			random := fmt.Sprintf("%s-%d", "hmac:", s.runSeed)
			s.step("create").puts(driver, widget).puts(one, `Secret default/s {"data":{"p":"`+random+first+`"}}`)
			s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
			if second != first {
				s.puts(two, `Secret default/s {"data":{"p":"`+random+second+`"}}`)
			}
		}
	}
	r := reference(t, scene(), story("a", "a"))
	for name, tt := range map[string]struct{ second, want string }{"kept": {"a", ""}, "generated again": {"b", "DESTRUCTIVE BLIP"}} {
		t.Run(name, func(t *testing.T) {
			s := tell(t)
			story("a", tt.second)(s)
			if got := Judge(r, s.after(killedAt("change")), nil); verdicts(got) != tt.want {
				t.Errorf("%s, want %s", verdicts(got), tt.want)
			}
		})
	}
}

func TestWhatReplacedAnObjectIsNotItselfReplaced(t *testing.T) {
	story := func(times int) func(*story) {
		return func(s *story) {
			s.step("create").puts(driver, widget).puts(one, owned("child", ""))
			s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
			for range times {
				s.deletes(one, "ConfigMap default/child").puts(one, owned("child", ""))
			}
		}
	}
	r := reference(t, scene(), story(1))
	for times, want := range map[int]string{1: "", 2: "DESTRUCTIVE BLIP"} {
		s := tell(t)
		story(times)(s)
		if got := Judge(r, s.after(do(fault.DelayWatch, "change", "")), nil); verdicts(got) != want {
			t.Errorf("replaced %d times: %q, want %q", times, verdicts(got), want)
		}
	}
}

func TestAnObjectThatAnOldListBroughtBackMayBeDeletedAgain(t *testing.T) {
	r := reference(t, scene(), plain)
	for _, test := range []struct {
		kind fault.Kind
		step string // the step in which the child is deleted once more
		want string
	}{
		{fault.StaleRestart, deleted, ""},
		{fault.StaleRestart, "change", "DESTRUCTIVE BLIP"}, // the child should still exist
		{fault.Restart, deleted, "DESTRUCTIVE BLIP"},
	} {
		s := tell(t)
		again := func(step string) {
			switch {
			case step != test.step:
			case step == deleted:
				s.puts(two, owned("child", "")).deletes(two, "ConfigMap default/child")
			default:
				s.deletes(two, "ConfigMap default/child").puts(two, owned("child", ""))
			}
		}
		s.step("create").puts(driver, widget)
		s.puts(one, `ConfigMap default/lock {}`).puts(one, owned("child", "")).puts(one, generated("run-aaaaa")).deletes(one, "ConfigMap default/lock")
		s.ledger("bucket w")
		s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
		s.puts(one, `Widget.x default/w {"spec":{"n":2},"status":{"n":2}}`)
		again("change")
		s.ledger("bucket w")
		s.step(deleted).deletes(driver, "ConfigMap default/child").deletes(driver, "ConfigMap default/run-aaaaa")
		again(deleted)
		s.deletes(driver, "Widget.x default/w")
		s.ledger()
		s.run.Steps[len(s.run.Steps)-1].Ledger = []string{}
		if got := Judge(r, s.after(do(test.kind, test.step, "")), nil); verdicts(got) != test.want {
			t.Errorf("%s in step %s: %q, want %q", test.kind, test.step, verdicts(got), test.want)
		}
	}
}

func TestAReferenceSurvivesJSON(t *testing.T) {
	r := reference(t, scene(), plain)
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again Reference
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	s := tell(t)
	plain(s)
	if got := Judge(&again, s.after(killedAt("create")), nil); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	if again.World("create").Hash() != r.World("create").Hash() || len(again.World("none").Objects) != 0 {
		t.Error("the worlds differ")
	}
}

func TestAReferenceNeedsRunsThatCanBeCompared(t *testing.T) {
	run := func(change func(*evidence.Run)) *evidence.Run {
		s := tell(t)
		plain(s)
		out := s.end()
		change(out)
		return out
	}
	same := func(*evidence.Run) {}
	for name, tt := range map[string]struct {
		runs []*evidence.Run
		want string
	}{
		"too few":         {[]*evidence.Run{run(same), run(same)}, "too few"},
		"inconclusive":    {[]*evidence.Run{run(same), run(same), run(func(r *evidence.Run) { r.Inconclusive = "plane died" })}, "plane died"},
		"different steps": {[]*evidence.Run{run(same), run(same), run(func(r *evidence.Run) { r.Steps = r.Steps[:1] })}, "different steps"},
		"restless":        {[]*evidence.Run{run(same), run(same), run(func(r *evidence.Run) { r.Steps[0].Restless = true })}, "does not come to rest"},
	} {
		t.Run(name, func(t *testing.T) {
			sc := scene()
			sc.Name = "s"
			if _, err := NewReference(sc, tt.runs); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestWithoutAFault(t *testing.T) {
	again := scene()
	again.Steps = []scenario.Step{{Name: "a"}, {Name: "b"}, {Name: "back", SameAs: "a"}}
	for name, tt := range map[string]struct {
		scene *scenario.Scenario
		story func(*story)
		want  string
	}{
		"all is well": {scene(), plain, ""},
		"a leak": {scene(), func(s *story) {
			plain(s)
			s.puts(one, `ConfigMap default/w-left {"data":{"widgetName":"w"}}`)
			s.rest().Rested = s.rev
		}, "LEAK"},
		"what is older than the resource is no leak": {scene(), func(s *story) {
			s.step("create").puts(one, `ConfigMap default/w-older {"data":{"widgetName":"w"}}`)
			plain(s)
			s.run.Steps = s.run.Steps[1:]
			s.rest().Rested = s.rev
		}, ""},
		"what does not speak of the resource is no leak": {scene(), func(s *story) {
			plain(s)
			s.puts(one, `ConfigMap default/settings {"data":{"of":"all"}}`)
			s.rest().Rested = s.rev
		}, ""},
		"a loop at rest": {scene(), func(s *story) {
			right(s)
			s.idles(5, 1200*time.Millisecond, func(int) { s.call(one, "patch", cm("child"), 200, s.rev) })
		}, "HOT LOOP"},
		"a heartbeat": {scene(), func(s *story) {
			right(s)
			s.idles(3, 4*time.Second, func(i int) {
				s.puts(one, fmt.Sprintf(`Widget.x default/w {"spec":{"n":1},"status":{"at":"2026-01-01T00:00:0%dZ"}}`, i))
			})
		}, ""},
		"another state on the way back": {again, func(s *story) {
			s.step("a").puts(driver, widget).puts(one, owned("child", ""))
			s.step("b").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).puts(one, `ConfigMap default/old {}`)
			s.step("back").puts(driver, widget)
		}, "PATH DEPENDENT"},
		"a counter on the way back": {again, func(s *story) {
			s.step("a").puts(driver, `Widget.x default/w {"spec":{"n":1},"status":{"syncs":1}}`)
			s.step("b").puts(driver, `Widget.x default/w {"spec":{"n":2},"status":{"syncs":2}}`)
			s.step("back").puts(driver, `Widget.x default/w {"spec":{"n":1},"status":{"syncs":3}}`)
		}, ""},
		"a value that the controller's client spells otherwise": {again, func(s *story) {
			s.step("a").puts(driver, `Widget.x default/w {"spec":{"every":"60s"}}`).puts(one, `Widget.x default/w {"metadata":{"finalizers":["x/y"]},"spec":{"every":"1m0s"}}`)
			s.step("b").puts(driver, `Widget.x default/w {"metadata":{"finalizers":["x/y"]},"spec":{"every":"90s"}}`)
			s.step("back").puts(driver, `Widget.x default/w {"metadata":{"finalizers":["x/y"]},"spec":{"every":"60s"}}`)
		}, ""},
		"an owner in another namespace": {again, func(s *story) {
			s.step("a").puts(driver, widget).puts(one, `ConfigMap other/child {"metadata":{"owner:Widget.x default/w"}}`)
		}, "DIVERGED"},
		"a panic": {scene(), func(s *story) { right(s).exits(one, 2, "panic: no") }, "CRASHED"},
	} {
		t.Run(name, func(t *testing.T) {
			var runs []*evidence.Run
			for range 3 {
				s := tell(t)
				tt.story(s)
				runs = append(runs, s.end())
			}
			tt.scene.Name = "s"
			r, err := NewReference(tt.scene, runs)
			if err != nil {
				t.Fatal(err)
			}
			if got := Faultless(r, runs, nil); verdicts(got) != tt.want {
				t.Errorf("%s, want %s: %+v", verdicts(got), tt.want, got)
			}
		})
	}
}

func TestAFewWritesAtRestAreALoopOnlyIfAnotherRunShowsThem(t *testing.T) {
	for _, c := range []struct {
		writes, in int // runs, of three
		want       string
	}{
		{3, 1, ""},
		{3, 2, "HOT LOOP"},
		{8, 1, "HOT LOOP"},
	} {
		t.Run(fmt.Sprintf("%d writes in %d runs", c.writes, c.in), func(t *testing.T) {
			var runs []*evidence.Run
			for i := range 3 {
				s := right(tell(t))
				if i < c.in {
					s.idles(c.writes, time.Second, func(int) { s.call(one, "update", cm("child"), 200, s.rev) })
				}
				runs = append(runs, s.end())
			}
			if got := verdicts(Faultless(nil, runs, nil)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestAControllerThatNeverRestsIsALoopWithoutAReference(t *testing.T) {
	s := right(tell(t))
	for i := range 40 {
		s.puts(one, fmt.Sprintf(`Widget.x default/w {"spec":{"n":1},"status":{"at":"2026-01-01T00:00:%02dZ"}}`, i))
	}
	s.rest().Restless = true
	if got := Faultless(nil, []*evidence.Run{s.end()}, nil); verdicts(got) != "HOT LOOP" {
		t.Errorf("%+v", got)
	}
}

func unusedLines(unused []Unused) (lines []string) {
	for _, f := range RemarkUnused(unused) {
		lines = append(lines, f.Sentence)
	}
	return lines
}

func TestPermissionsAreComparedWithWhatWasAsked(t *testing.T) {
	s := tell(t)
	right(s)
	secrets := state.Ref{GroupKind: schema.GroupKind{Kind: "Secret"}}
	s.call(one, "list", secrets, 403, 0).Message = `secrets is forbidden: User "system:serviceaccount:a:b" cannot list resource "secrets"`
	s.call(one, "create", cm("quota"), 403, 0).Message = `pods "x" is forbidden: exceeded quota`
	s.call(one, "create", cm("injected"), 403, 0).Injected = true
	role := subject.Role{Name: "manager", File: "config/rbac/role.yaml", Object: unstructured.Unstructured{Object: map[string]any{"rules": []any{
		map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps", "events", "pods"}, "verbs": []any{"create", "delete"}},
		map[string]any{"apiGroups": []any{"x"}, "resources": []any{"widgets/finalizers", "metrics"}, "verbs": []any{"update"}},
	}}}, Idle: map[string]string{"metrics.x": "they are off"}}
	who := &subject.Subject{Identity: subject.ServiceAccount{Namespace: "a", Name: "b"}, Roles: []subject.Role{role}}
	runs := []*evidence.Run{s.end()}
	missing, unused := MissingPermissions(who, runs), unusedLines(UnusedPermissions(who, runs))
	s.call(one, "patch", cm("applied"), 403, 0).Message = `configmaps "applied" is forbidden: User "u" cannot create resource "configmaps" in API group "" in the namespace "a"`
	if applied := MissingPermissions(who, []*evidence.Run{s.end()}); len(applied) != 2 || !slices.Equal(applied[0].Missing, []Permission{{Verb: "create", Resource: "configmaps"}}) {
		t.Errorf("an apply that may not create: %+v", applied)
	}
	if verdicts(missing) != "RBAC MISSING" || !strings.Contains(missing[0].Sentence, "list secrets") {
		t.Errorf("missing %+v", missing)
	}
	want := []string{"manager in config/rbac/role.yaml: delete on configmaps was never used", "manager in config/rbac/role.yaml: create, delete on pods was never used"}
	if strings.Join(unused, "\n") != strings.Join(want, "\n") {
		t.Errorf("unused %q", unused)
	}
	if admin := (&subject.Subject{}); MissingPermissions(admin, runs) != nil || UnusedPermissions(admin, runs) != nil {
		t.Error("an administrator has verdicts about RBAC")
	}
}

func TestPermissionsThatAreGrantedToOthersAreNeeded(t *testing.T) {
	role := func(name string, rules ...any) subject.Role {
		return subject.Role{Name: name, Object: unstructured.Unstructured{Object: map[string]any{"rules": rules}}}
	}
	rule := func(resource string, verbs ...any) map[string]any {
		return map[string]any{"apiGroups": []any{"apps"}, "resources": []any{resource}, "verbs": verbs}
	}
	installed := unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "viewer"},
		"rules": []any{rule("statefulsets", "get")},
	}}
	who := &subject.Subject{
		Identity: subject.ServiceAccount{Namespace: "a", Name: "b"}, Install: []unstructured.Unstructured{installed},
		Roles: []subject.Role{role("manager", rule("deployments", "get", "delete"), rule("statefulsets", "get", "delete"))},
	}
	s := right(tell(t))
	written := func(kind, response string) {
		ref := state.Ref{GroupKind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: kind}, Namespace: "default", Name: "made"}
		s.call(one, "create", ref, 201, 0).Response = json.RawMessage(response)
	}
	written("Role", `{"rules":[{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get"]}]}`)
	written("RoleBinding", `{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"viewer"}}`)
	want := []string{"manager: delete on deployments.apps was never used", "manager: delete on statefulsets.apps was never used"}
	if unused := unusedLines(UnusedPermissions(who, []*evidence.Run{s.end()})); !slices.Equal(unused, want) {
		t.Errorf("unused: %q", unused)
	}
}

func TestARefusalNamesThePermissionsThatAreMissing(t *testing.T) {
	create := Permission{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "roles"}
	for message, want := range map[string][]Permission{
		`roles.rbac.authorization.k8s.io is forbidden: User "u" cannot create resource "roles"`: {create},
		`roles.rbac.authorization.k8s.io "r" is forbidden: user "u" (groups=["g"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["pods" "pods/log"], Verbs:["get"]}
{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["d"], Verbs:["get" "list"]}
{NonResourceURLs:["/metrics"], Verbs:["get"]}`: {
			{Verb: "get", Resource: "pods"}, {Verb: "get", Resource: "pods/log"},
			{Verb: "get", Group: "apps", Resource: "deployments"}, {Verb: "list", Group: "apps", Resource: "deployments"},
			{Verb: "get", Path: "/metrics"},
		},
		`pods "p" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`: nil,
	} {
		if got := lacking(create, message); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", message, got, want)
		}
	}
}

func TestAnApplyThatCreatesUsesThePermissionToCreate(t *testing.T) {
	s := tell(t)
	s.step("create").puts(driver, widget)
	s.call(one, "patch", cm("applied"), 201, 0)
	s.call(one, "patch", state.Ref{GroupKind: schema.GroupKind{Kind: "Pod"}, Namespace: "default", Name: "p"}, 200, 0)
	role := subject.Role{Name: "manager", Object: unstructured.Unstructured{Object: map[string]any{"rules": []any{
		map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps", "pods"}, "verbs": []any{"create", "patch"}},
	}}}}
	who := &subject.Subject{Identity: subject.ServiceAccount{Namespace: "a", Name: "b"}, Roles: []subject.Role{role}}
	unused := unusedLines(UnusedPermissions(who, []*evidence.Run{s.end()}))
	if want := []string{"manager: create on pods was never used"}; !slices.Equal(unused, want) {
		t.Errorf("unused: %q", unused)
	}
}

func TestWhoWatchesNeedsNoGetAndListToBeSeen(t *testing.T) {
	for _, c := range []struct {
		name    string
		watches bool
		want    []string
	}{
		{"it watches", true, nil},
		{"it asks for nothing", false, []string{"manager: get, list, watch on configmaps was never used"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := right(tell(t))
			if c.watches {
				s.call(one, "watch", cm(""), 200, 0)
			}
			role := subject.Role{Name: "manager", Object: unstructured.Unstructured{Object: map[string]any{"rules": []any{
				map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get", "list", "watch"}},
			}}}}
			who := &subject.Subject{Identity: subject.ServiceAccount{Namespace: "a", Name: "b"}, Roles: []subject.Role{role}}
			if unused := unusedLines(UnusedPermissions(who, []*evidence.Run{s.end()})); !slices.Equal(unused, c.want) {
				t.Errorf("unused: %q", unused)
			}
		})
	}
}

func TestALoopOnACustomLeaseIsFoundAndOneOnALeaseIsNot(t *testing.T) {
	for kind, want := range map[string]string{"Lease.coordination.k8s.io": "", "Lease.example.com": "HOT LOOP", "Node.example.com": "HOT LOOP", "Event.events.k8s.io": ""} {
		t.Run(kind, func(t *testing.T) {
			ref, _ := object(t, kind+" default/l")
			s := tell(t).step("create").puts(driver, widget).puts(one, kind+" default/l {}")
			s.idles(10, 150*time.Millisecond, func(int) { s.call(one, "patch", ref, 200, s.rev) })
			if got := Faultless(nil, []*evidence.Run{s.end()}, nil); verdicts(got) != want {
				t.Errorf("%q, want %q", verdicts(got), want)
			}
		})
	}
}

func TestTheRecordOfAnElectionInAConfigMapChangesTheLeader(t *testing.T) {
	s := tell(t).step("create")
	for _, who := range []string{one, two} {
		s.puts(who, fmt.Sprintf(`ConfigMap default/l {"metadata":{"annotations":{%q:"{\"holderIdentity\":\"%s\"}"}}}`, request.LeaderAnnotation, who))
	}
	if old, fresh, _ := takeover(s.end()); old != one || fresh != two {
		t.Errorf("taken from %q by %q", old, fresh)
	}
}

func TestOnlyAnUpstreamLeaseChangesTheLeader(t *testing.T) {
	for kind, want := range map[string]string{"Lease.coordination.k8s.io": two, "Lease.example.com": ""} {
		s := tell(t).step("create")
		for _, who := range []string{one, two} {
			s.puts(who, fmt.Sprintf(`%s default/l {"spec":{"holderIdentity":%q}}`, kind, who))
		}
		if _, fresh, _ := takeover(s.end()); fresh != want {
			t.Errorf("%s: taken by %q, want %q", kind, fresh, want)
		}
	}
}

func TestAPermissionThatNoRunCanShowIsKnownByItsGroup(t *testing.T) {
	for _, tt := range []struct {
		group, resource string
		want            bool
	}{
		{"coordination.k8s.io", "leases", true}, {"*", "leases", true}, {"example.com", "leases", false},
		{"", "events", true}, {"events.k8s.io", "events", true}, {"example.com", "events", false},
		{"authentication.k8s.io", "tokenreviews", true}, {"example.com", "tokenreviews", false},
		{"example.com", "widgets/finalizers", true}, {"", "serviceaccounts/token", false}, {"*", "*", false}, {"", "nodes", false},
	} {
		if got := notSeen(tt.group, tt.resource); got != tt.want {
			t.Errorf("notSeen(%q, %q) = %t", tt.group, tt.resource, got)
		}
	}
}

func TestHeadlineNamesAnObjectThatMatters(t *testing.T) {
	for _, lock := range []string{
		"ConfigMap system/widget-leader", "ConfigMap system/a.x-lock", "Lease.coordination.k8s.io system/a", "Event default/a", "Event.events.k8s.io default/a",
	} {
		differences := []state.Difference{{Object: lock, Want: "there"}, {Object: "Deployment.apps default/web", Path: "status.replicas", Want: "1", Got: "2"}}
		if got := outcome(differences, false); !strings.HasPrefix(got, "Deployment.apps default/web has status.replicas") {
			t.Errorf("%s: %s", lock, got)
		}
	}
	if minor("ConfigMap default/child") != 0 || minor("Lease.example.com default/leader") != 0 {
		t.Error("an object that matters counts as a lock")
	}
}
