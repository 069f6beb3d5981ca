package judge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

func TestAStateThatTheControllerRefusesDoesNotDependOnThePath(t *testing.T) {
	sc := scene()
	sc.Steps = []scenario.Step{{Name: "a"}, {Name: "b"}, {Name: "back", SameAs: "a"}}
	for reason, want := range map[string]string{"UnsupportedOperation": "", "Failed": "PATH DEPENDENT"} {
		var runs []*evidence.Run
		for range 3 {
			s := tell(t)
			widget := func(n int, status, reason string) string {
				return fmt.Sprintf(`Widget.x default/w {"spec":{"n":%d},"status":{"conditions":[{"type":"Ready","status":%q,"reason":%q}]}}`, n, status, reason)
			}
			s.step("a").puts(driver, widget(1, "True", "Ready")).puts(one, `ConfigMap default/child {"data":{"n":"1"}}`)
			s.step("b").puts(driver, widget(2, "True", "Ready")).puts(one, `ConfigMap default/child {"data":{"n":"2"}}`)
			s.step("back").puts(driver, widget(1, "True", "Ready")).puts(one, widget(1, "False", reason))
			runs = append(runs, s.end())
		}
		r, err := NewReference(sc, runs)
		if err != nil {
			t.Fatal(err)
		}
		ship := &subject.Subject{Primary: []string{"Widget.x"}}
		if got := verdicts(Faultless(r, runs, ship)); got != want {
			t.Errorf("%s: %q, not %q", reason, got, want)
		}
		notes := strings.Join(Refusals(r, runs, ship), "\n")
		if noted := strings.Contains(notes, "the controller refuses the state of step back"); noted != (want == "") {
			t.Errorf("%s: the notes are %q", reason, notes)
		}
	}
}

func TestASecretWithGeneratedValuesMayOutliveItsResource(t *testing.T) {
	for name, c := range map[string]struct {
		secret func(run int) string
		want   string
	}{
		"generated": {func(run int) string { return fmt.Sprintf(`{"data":{"widgetName":"w","password":"p%d"}}`, run) }, ""},
		"fixed":     {func(int) string { return `{"data":{"widgetName":"w","password":"p"}}` }, "LEAK"},
	} {
		var runs []*evidence.Run
		for run := range 3 {
			s := tell(t)
			plain(s)
			s.puts(one, `Secret default/w-admin `+c.secret(run))
			s.rest().Rested = s.rev
			runs = append(runs, s.end())
		}
		r, err := NewReference(scene(), runs)
		if err != nil {
			t.Fatal(err)
		}
		if got := verdicts(Faultless(r, runs, nil)); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
		if noted := len(Kept(r, runs, nil)) == 1; noted != (c.want == "") {
			t.Errorf("%s: the notes are %q", name, Kept(r, runs, nil))
		}
	}
}
