package judge

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

const other = `Widget.x default/v {"spec":{"n":1}}`

// of returns a ConfigMap that a resource owns.
func of(widget string) string {
	return `ConfigMap default/child {"metadata":{"owner:Widget.x default/` + widget + `"}}`
}

const orphan = `ConfigMap default/child {}`

func TestAnObjectIsNotTakenFromALivingOwner(t *testing.T) {
	begin := func(s *story) *story {
		return s.step("create").puts(driver, widget).puts(driver, other).puts(one, of("w"))
	}
	leaving := `Widget.x default/w {"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`
	for name, tt := range map[string]struct {
		fault     fault.Fault
		reference func(*story)
		run       func(*story)
		want      string
	}{
		"nothing":                 {killedAt("create"), nothing, nothing, ""},
		"taken and given back":    {killedAt("create"), nothing, func(s *story) { s.puts(two, of("v")).puts(two, of("w")) }, "TAKEN OVER"},
		"taken by another client": {killedAt("create"), nothing, func(s *story) { s.puts(driver, of("v")).puts(driver, of("w")) }, ""},
		"an orphan is adopted":    {killedAt("create"), nothing, func(s *story) { s.puts(driver, orphan).puts(two, of("w")) }, ""},
		"released and adopted":    {killedAt("create"), nothing, func(s *story) { s.puts(two, orphan).puts(two, of("w")) }, ""},
		"the owner is being deleted": {killedAt("create"), nothing, func(s *story) {
			s.puts(driver, leaving).puts(two, of("v")).puts(driver, widget).puts(two, orphan).puts(two, of("w"))
		}, ""},
		"as in the reference":              {killedAt("create"), func(s *story) { s.puts(one, of("v")) }, func(s *story) { s.puts(two, of("v")) }, ""},
		"one more between the same kinds":  {killedAt("create"), func(s *story) { s.puts(one, of("v")) }, func(s *story) { s.puts(two, of("v")).puts(two, of("w")).puts(two, of("v")) }, ""},
		"the controller sees an old state": {do(fault.StaleRestart, "create", ""), nothing, func(s *story) { s.puts(two, of("v")).puts(two, of("w")) }, ""},
	} {
		r := reference(t, scene(), func(s *story) { tt.reference(begin(s)) })
		s := begin(tell(t))
		tt.run(s)
		if got := verdicts(Judge(r, s.after(tt.fault), nil)); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}

func TestTwoResourcesDoNotFightForAnObject(t *testing.T) {
	widgets := &subject.Subject{Primary: []string{"Widget.x"}}
	const fight = "from Widget.x default/v, which still exists, for Widget.x default/w"
	const theft = "from Widget.x default/w, which still exists, for Widget.x default/v"
	for name, tt := range map[string]struct {
		subject *subject.Subject
		owner   string // the second owner
		story   func(*story)
		want    string
	}{
		"a handover":                             {widgets, other, func(s *story) { s.puts(one, of("v")) }, theft},
		"the kind of the owners may be internal": {nil, other, func(s *story) { s.puts(one, of("v")) }, ""},
		"the new owner names the old one":        {widgets, `Widget.x default/v {"spec":{"replaces":"w"}}`, func(s *story) { s.puts(one, of("v")) }, ""},
		"the new owner names the object":         {widgets, `Widget.x default/v {"spec":{"config":"child"}}`, func(s *story) { s.puts(one, of("v")) }, ""},
		"a fight":                                {nil, other, func(s *story) { s.puts(one, of("v")).puts(one, of("w")).puts(one, of("v")) }, fight},
		"a fight for an object that is named":    {widgets, `Widget.x default/v {"spec":{"config":"child"}}`, func(s *story) { s.puts(one, of("v")).puts(one, of("w")).puts(one, of("v")) }, fight},
		"back in the next step":                  {nil, other, func(s *story) { s.puts(one, of("v")).step("change").puts(one, of("w")) }, ""},
		"another client gives it":                {nil, other, func(s *story) { s.puts(one, of("v")).puts(driver, of("w")).puts(one, of("v")) }, ""},
	} {
		var runs []*evidence.Run
		for range 3 {
			s := tell(t)
			s.step("create").puts(driver, widget).puts(driver, tt.owner).puts(one, of("w"))
			tt.story(s)
			runs = append(runs, s.end())
		}
		sc := scene()
		sc.Name = "s"
		r, err := NewReference(sc, runs)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*Reference{r, nil} { // a fight may prevent that the controller comes to rest
			got := ""
			for _, f := range Faultless(r, runs, tt.subject) {
				if got += string(f.Verdict) + f.Sentence; f.Step != "create" {
					t.Errorf("%s: the step is %q", name, f.Step)
				}
			}
			want := ""
			if tt.want != "" {
				want = "TAKEN OVEReven without a fault, the controller takes ConfigMap default/child " + tt.want
			}
			if got != want {
				t.Errorf("%s: %q, not %q", name, got, want)
			}
		}
	}
}
