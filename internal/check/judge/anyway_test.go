package judge

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

func TestWhatAlsoDiffersIfNothingIsChangedDoesNotDependOnThePath(t *testing.T) {
	const request, child = `Request.x default/r {"spec":{"n":1}}`, `ConfigMap default/child {"data":{"n":"1"}}`
	nothing := func(*story) {}
	for name, of := range map[string]struct {
		changed, unchanged func(*story) // what happens in the last step
		want               string
	}{
		"an object that the controller makes after some time": {
			func(s *story) { s.puts(one, request) }, func(s *story) { s.puts(one, request) }, "",
		},
		"an object that it makes only after a change": {
			func(s *story) { s.puts(one, request) }, nothing, "PATH DEPENDENT",
		},
		"another object than the one that it makes anyway": {
			func(s *story) { s.puts(one, request).puts(one, child) }, func(s *story) { s.puts(one, request) }, "PATH DEPENDENT",
		},
	} {
		sc := scene()
		sc.Steps = []scenario.Step{{Name: "a"}, {Name: "b"}, {Name: "back", SameAs: "a"}}
		told := func(last func(*story)) *evidence.Run {
			s := tell(t)
			s.step("a").puts(driver, widget)
			s.step("b").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
			last(s.step("back").puts(driver, widget))
			s.rest().Rested = s.rev
			return s.end()
		}
		runs := []*evidence.Run{told(of.changed), told(of.changed), told(of.changed)}
		r, err := NewReference(sc, runs)
		if err != nil {
			t.Fatal(err)
		}
		r.LearnAnyway(told(of.unchanged))
		if got := verdicts(Faultless(r, runs, nil)); got != of.want {
			t.Errorf("%s: %q, not %q", name, got, of.want)
		}
	}
}
