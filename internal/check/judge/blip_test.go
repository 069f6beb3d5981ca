package judge

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestTheTargetOfAFaultIsNotReplacedInALaterStep(t *testing.T) {
	replace := func(s *story) { s.deletes(one, "ConfigMap default/child").puts(one, owned("child", "")) }
	r := reference(t, scene(), func(s *story) {
		s.step("create").puts(driver, widget).puts(one, owned("child", ""))
		s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
	})
	for _, kind := range []fault.Kind{fault.DeleteChild, fault.EditChild} {
		for step, want := range map[string]string{"create": "", "change": "DESTRUCTIVE BLIP"} {
			s := tell(t)
			s.step("create").puts(driver, widget).puts(one, owned("child", ""))
			if replace(s); step == "change" {
				s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
				replace(s)
			} else {
				s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
			}
			if got := verdicts(Judge(r, s.after(do(kind, "create", "ConfigMap/default/child")), nil)); got != want {
				t.Errorf("%s, replaced again in %s: %q, not %q", kind, step, got, want)
			}
		}
	}
}

func TestAnObjectThatTheReferenceAlsoReplacesIsNotReplacedMoreOften(t *testing.T) {
	// In the reference, each of two objects with generated names is replaced.
	story := func(replaced ...string) func(*story) {
		return func(s *story) {
			s.step("create").puts(driver, widget).puts(one, generated("run-aaaaa")).puts(one, generated("run-bbbbb"))
			s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
			for _, name := range replaced {
				s.puts(one, generated("run-n"+name)).deletes(one, "ConfigMap default/run-"+name)
			}
		}
	}
	r := reference(t, scene(), story("aaaaa", "bbbbb"))
	for want, replaced := range map[string][]string{"": {"bbbbb", "aaaaa"}, "DESTRUCTIVE BLIP": {"aaaaa", "bbbbb", "naaaaa"}} {
		s := tell(t)
		story(replaced...)(s)
		found := Judge(r, s.after(do(fault.DelayWatch, "change", "")), nil)
		if got := verdicts(found); got != want {
			t.Errorf("%q replaced: %q, not %q", replaced, got, want)
		}
		for _, f := range found {
			if !strings.HasSuffix(f.Sentence, "more often than without the fault") {
				t.Errorf("the sentence is %q, although the reference deletes such objects as well", f.Sentence)
			}
		}
	}
}

func TestAnObjectThatWasCreatedDuringAGracefulExitMayBeReplaced(t *testing.T) {
	r := reference(t, scene(), func(s *story) {
		s.step("create").puts(driver, widget).puts(one, generated("run-aaaaa"))
	})
	for name, tt := range map[string]struct {
		exits bool
		want  string
	}{
		"the controller was shutting down": {true, ""},
		"the controller knew its answer":   {false, "DESTRUCTIVE BLIP"},
	} {
		s := tell(t)
		s.step("create").puts(driver, widget)
		if tt.exits {
			s.entry(trace.Entry{Instance: one, Process: &trace.Process{What: "terminated"}})
		}
		if tt.exits { // what it creates first may be something else
			s.puts(one, owned("other", "")).deletes(two, "ConfigMap default/other")
		}
		s.puts(one, generated("run-bbbbb")).puts(two, generated("run-ccccc")).deletes(two, "ConfigMap default/run-bbbbb")
		if got := verdicts(Judge(r, s.after(do(fault.Terminate, "create", "")), nil)); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}

func TestEachOfTwoKillsMayLoseACreation(t *testing.T) {
	const three = "controller-3"
	r := reference(t, scene(), func(s *story) {
		s.step("create").puts(driver, widget).puts(one, generated("run-aaaaa"))
	})
	for kind, want := range map[fault.Kind]string{fault.KillAgain: "", fault.KillLost: "DESTRUCTIVE BLIP"} {
		s := tell(t)
		s.step("create").puts(driver, widget).puts(one, generated("run-bbbbb")).killed(one)
		s.puts(two, generated("run-ccccc")).killed(two).puts(three, generated("run-ddddd"))
		s.deletes(three, "ConfigMap default/run-bbbbb").deletes(three, "ConfigMap default/run-ccccc")
		f := do(kind, "create", "")
		f.Point.Verb = "create"
		if got := verdicts(Judge(r, s.after(f), nil)); got != want {
			t.Errorf("%s: %q, not %q", kind, got, want)
		}
	}
}

func TestAControllerMayTakeDownAtItsExitWhatItHasSetUpAtItsStart(t *testing.T) {
	const hook = "ConfigMap default/webhook {}"
	plain := func(s *story) {
		s.step("(start)").puts(one, hook)
		s.step("create").puts(driver, widget).puts(one, owned("child", ""))
	}
	r := reference(t, scene(), plain)
	for name, tt := range map[string]struct {
		exits  bool
		object string
		want   string
	}{
		"its webhook at its exit":       {true, hook, ""},
		"its webhook while it goes on":  {false, hook, "DESTRUCTIVE BLIP"},
		"a child of a user at its exit": {true, "", "DESTRUCTIVE BLIP"},
	} {
		s := tell(t)
		plain(s)
		if tt.exits {
			s.entry(trace.Entry{Instance: one, Process: &trace.Process{What: "terminated"}})
		}
		object, gone := tt.object, "ConfigMap default/webhook"
		if object == "" {
			object, gone = owned("child", ""), "ConfigMap default/child"
		}
		s.deletes(one, gone).tick()
		s.entry(trace.Entry{Instance: one, Process: &trace.Process{What: "ended"}})
		s.puts(two, object)
		if got := verdicts(Judge(r, s.after(do(fault.Terminate, "create", "")), nil)); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}
