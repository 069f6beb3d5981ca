package judge

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

func TestWhatALaterStepRepeatsIsTheSameFinding(t *testing.T) {
	sc := scene()
	sc.Steps = []scenario.Step{{Name: "a"}, {Name: "b"}, {Name: "back", SameAs: "a"}, {Name: "again", SameAs: "b"}, sc.Steps[2]}
	old := `ConfigMap default/old {"metadata":{"labels":{"widget":"w"}}}`
	for name, tt := range map[string]struct {
		extra string // made in step again
		want  string
	}{
		"the leftover of one step": {"", "PATH DEPENDENT"},
		"another one":              {`ConfigMap default/more {"metadata":{"labels":{"widget":"w"}}}`, "PATH DEPENDENT, PATH DEPENDENT"},
	} {
		t.Run(name, func(t *testing.T) {
			var runs []*evidence.Run
			for range 3 {
				s := tell(t)
				s.step("a").puts(driver, widget).puts(one, owned("child", ""))
				s.step("b").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
				s.step("back").puts(driver, widget).puts(one, old)
				s.step("again").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
				if tt.extra != "" {
					s.puts(one, tt.extra)
				}
				s.step(deleted).deletes(driver, "Widget.x default/w").deletes(driver, "ConfigMap default/child")
				runs = append(runs, s.end())
			}
			r, err := NewReference(sc, runs)
			if err != nil {
				t.Fatal(err)
			}
			if got := Faultless(r, runs, nil); verdicts(got) != tt.want {
				t.Errorf("%s, want %s: %+v", verdicts(got), tt.want, got)
			}
		})
	}
}
