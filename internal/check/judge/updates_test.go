package judge

import (
	"fmt"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
)

// web returns a Deployment of the controller.
func web(replicas int, image string) string {
	return fmt.Sprintf(`Deployment.apps default/web {"metadata":{"owner:Widget.x default/w"},"spec":{"replicas":%d,"template":{"spec":{"image":%q}}}}`, replicas, image)
}

// service returns a Service of the controller.
func service(app string) string {
	return fmt.Sprintf(`Service default/web {"metadata":{"owner:Widget.x default/w"},"spec":{"selector":{"app":%q}}}`, app)
}

// rolling builds a story in which the controller makes a Deployment and a Service, and then replaces
// the image. more adds to the second step.
func rolling(more func(*story)) func(*story) {
	return func(s *story) {
		s.step("create").puts(driver, widget).puts(one, web(3, "a")).puts(one, service("web"))
		s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
		more(s)
		s.puts(one, web(3, "b"))
	}
}

func nothing(*story) {}

func TestAnUpdateThatDestroysSomethingAndIsRevisedIsABlip(t *testing.T) {
	for name, tt := range map[string]struct {
		more func(*story)
		want string
	}{
		"nothing":                       {nothing, ""},
		"scaled to zero":                {func(s *story) { s.puts(two, web(0, "a")).puts(two, web(3, "a")) }, "Deployment.apps default/web is scaled down from 3 to 0 and up again, which never happens without the fault"},
		"scaled down with the rollout":  {func(s *story) { s.puts(two, web(1, "b")).puts(two, web(3, "b")) }, "Deployment.apps default/web is scaled down from 3 to 1 and up again, which never happens without the fault"},
		"scaled up and down":            {func(s *story) { s.puts(two, web(5, "a")).puts(two, web(3, "a")) }, ""},
		"another client scales it":      {func(s *story) { s.puts(driver, web(0, "a")).puts(two, web(3, "a")) }, ""},
		"another client scales it back": {func(s *story) { s.puts(two, web(0, "a")).puts(driver, web(3, "a")) }, ""},
		"the selector there and back":   {func(s *story) { s.puts(two, service("none")).puts(two, service("web")) }, "the selector of Service default/web is changed and changed back, which never happens without the fault"},
		"the template there and back": {func(s *story) { s.puts(two, web(3, "b")).puts(two, web(3, "a")).puts(two, web(3, "b")) },
			"the template of Deployment.apps default/web is changed and changed back, which never happens without the fault"},
		"a second rollout":         {func(s *story) { s.puts(two, web(3, "x")).puts(two, web(3, "b")) }, "Deployment.apps default/web is rolled out 2 times instead of once"},
		"the same template twice":  {func(s *story) { s.puts(two, web(3, "b")).puts(two, web(3, "b")) }, ""},
		"a label of the workload":  {func(s *story) { s.puts(two, web(3, "a")).puts(two, web(3, "b")) }, ""},
		"another client's rollout": {func(s *story) { s.puts(driver, web(3, "x")).puts(two, web(3, "b")) }, ""},
	} {
		r := reference(t, scene(), rolling(nothing))
		s := tell(t)
		rolling(tt.more)(s)
		got := ""
		for _, f := range Judge(r, s.after(killedAt("change")), nil) {
			got += string(f.Verdict) + " " + f.Sentence
		}
		want := tt.want
		if want != "" {
			f := killedAt("change")
			want = "DESTRUCTIVE BLIP " + sentence(&f, 0, tt.want)
		}
		if got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
}

func TestAnUpdateThatTheReferenceMakesAsWellIsNoBlip(t *testing.T) {
	down := func(s *story) { s.puts(one, web(0, "a")).puts(one, web(3, "a")) }
	twice := func(s *story) { down(s); down(s) }
	rolls := func(images ...string) func(*story) {
		return func(s *story) {
			for _, image := range images {
				s.puts(one, web(3, image))
			}
		}
	}
	for name, tt := range map[string]struct {
		reference, run func(*story)
		want           string
	}{
		"a migration with a downtime is repeated": {down, twice, ""},
		"two rollouts in both":                    {rolls("x", "b"), rolls("x", "b"), ""},
		"three rollouts instead of two":           {rolls("x", "b"), rolls("x", "y", "b"), ""},
		"no downtime in the reference":            {nothing, twice, "DESTRUCTIVE BLIP"},
	} {
		r := reference(t, scene(), rolling(tt.reference))
		s := tell(t)
		rolling(tt.run)(s)
		if got := verdicts(Judge(r, s.after(killedAt("change")), nil)); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}

func TestWhoSeesAnOldStateMayWriteAnOldValue(t *testing.T) {
	again := func(s *story) { s.puts(one, web(3, "b")).puts(two, web(3, "a")).puts(two, web(3, "b")) }
	zero := func(s *story) { s.puts(two, web(0, "a")).puts(two, web(3, "a")) }
	rolls := func(s *story) { s.puts(two, web(3, "x")).puts(two, web(3, "b")) }
	for name, tt := range map[string]struct {
		fault fault.Fault
		more  func(*story)
		want  string
	}{
		"an old template after an old list":  {do(fault.StaleRestart, "change", ""), again, ""},
		"an old template without":            {killedAt("change"), again, "DESTRUCTIVE BLIP"},
		"a new value after an old list":      {do(fault.StaleRestart, "change", ""), zero, "DESTRUCTIVE BLIP"},
		"a new value with a delayed watch":   {do(fault.DelayWatch, "change", ""), zero, "DESTRUCTIVE BLIP"},
		"two rollouts with a delayed watch":  {do(fault.DelayWatch, "change", ""), rolls, ""},
		"a child was edited":                 {do(fault.EditChild, "change", "Service/default/web"), zero, ""},
		"two rollouts because of a deletion": {do(fault.DeleteChild, "change", "Service/default/web"), rolls, ""},
	} {
		r := reference(t, scene(), rolling(nothing))
		s := tell(t)
		rolling(tt.more)(s)
		if got := verdicts(Judge(r, s.after(tt.fault), nil)); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}

func TestWhatTheNextStepChangesBackIsNoBlip(t *testing.T) {
	tale := func(s *story) {
		s.step("create").puts(driver, widget).puts(one, web(3, "a")).puts(one, service("web"))
		s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).puts(one, web(1, "b")).puts(one, service("other"))
		s.step("back").puts(driver, `Widget.x default/w {"spec":{"n":1}}`).puts(one, web(3, "a")).puts(one, service("web"))
	}
	r := reference(t, scene(), tale)
	s := tell(t)
	tale(s)
	// Both steps are one window, because watches are held from the first to the second.
	f := fault.Fault{Kind: fault.LoseStates, Point: fault.Point{Step: "change", Resource: "deployments.apps"}, Until: "back"}
	if got := verdicts(Judge(r, s.after(f), nil)); got != "" {
		t.Errorf("the controller did what it was asked to do, but there is %s", got)
	}
}
