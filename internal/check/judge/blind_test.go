package judge

import (
	"slices"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
)

func TestAReferenceIsBlindIfMostOfTheControllersObjectsAreNotCompared(t *testing.T) {
	steady, early := owned("steady", ""), "ConfigMap default/early"
	for name, tt := range map[string]struct {
		story func(s *story, last bool)
		want  []string
	}{
		"everything is compared": {func(s *story, _ bool) {
			s.step("create").puts(driver, widget).puts(one, owned("early", "")).step("change").puts(one, steady)
		}, nil},
		"its only object is there in some runs only": {func(s *story, last bool) {
			if s.step("create").puts(driver, widget); !last {
				s.puts(one, owned("early", ""))
			}
		}, []string{early}},
		"one of three objects": {func(s *story, last bool) {
			if s.step("create").puts(driver, widget).puts(one, steady).puts(one, owned("second", "")); !last {
				s.puts(one, owned("early", ""))
			}
		}, nil},
		"it is compared after most steps": {func(s *story, last bool) {
			if s.step("create").puts(driver, widget); !last {
				s.puts(one, owned("early", ""))
			}
			if s.step("change"); last {
				s.puts(one, owned("early", ""))
			}
			s.step("again").step("more")
		}, nil},
		"an object of another client": {func(s *story, last bool) {
			if s.step("create").puts(driver, widget).puts(one, steady); !last {
				s.puts(driver, owned("early", ""))
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var runs []*evidence.Run
			for i := range 3 {
				s := tell(t)
				tt.story(s, i == 2)
				runs = append(runs, s.end())
			}
			r, err := NewReference(scene(), runs)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(r.Blind, tt.want) {
				t.Errorf("blind to %q, want %q", r.Blind, tt.want)
			}
		})
	}
}
