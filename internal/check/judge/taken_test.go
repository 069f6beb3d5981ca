package judge

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// mine is an object of a user that has the name of a child.
const mine = `ConfigMap default/child {"data":{"user":"1"}}`

func TestAnObjectOfAUserIsNotTakenOver(t *testing.T) {
	overwritten := `ConfigMap default/child {"data":{"a":"1"}}`
	adopted := `ConfigMap default/child {"metadata":{"owner:Widget.x default/w"},"data":{"user":"1"}}`
	naming := `Widget.x default/w {"spec":{"n":1,"configRef":{"name":"child"}}}`
	selecting := `Widget.x default/w {"spec":{"n":1,"selector":{"matchLabels":{"app":"w"}}}}`
	const changesOnly = "the controller creates no objects of this kind, but changes those of others"
	for name, tt := range map[string]struct {
		given string
		story func(s *story)
		want  string
	}{
		changesOnly:                 {mine, func(s *story) { s.puts(driver, widget).puts(one, overwritten) }, ""},
		"it is left alone":          {mine, func(s *story) { s.puts(driver, widget).puts(one, owned("other", "")) }, ""},
		"it is overwritten":         {mine, func(s *story) { s.puts(driver, widget).puts(one, overwritten) }, "TAKEN OVER"},
		"it is adopted":             {mine, func(s *story) { s.puts(driver, widget).puts(one, adopted) }, "TAKEN OVER"},
		"it is deleted":             {mine, func(s *story) { s.puts(driver, widget).deletes(one, "ConfigMap default/child") }, "TAKEN OVER"},
		"another client changes it": {mine, func(s *story) { s.puts(driver, widget).puts(driver, overwritten) }, ""},
		"another client deletes it": {mine, func(s *story) { s.puts(driver, widget).deletes(driver, "ConfigMap default/child") }, ""},
		"it is annotated and gets a status": {mine, func(s *story) {
			s.puts(driver, widget).puts(one, `ConfigMap default/child {"metadata":{"annotations":{"x":"y"},"labels":{"x":"y"},"finalizers":["x/y"]},"data":{"user":"1"},"status":{"used":true}}`)
		}, ""},
		"the resource names it":              {mine, func(s *story) { s.puts(driver, naming).puts(one, overwritten) }, ""},
		"the resource names it and owns it":  {mine, func(s *story) { s.puts(driver, naming).puts(one, adopted) }, ""},
		"what the resource names is lost":    {mine, func(s *story) { s.puts(driver, naming).puts(one, adopted).deletes(driver, "ConfigMap default/child") }, "TAKEN OVER"},
		"an annotation asks for it":          {`ConfigMap default/child {"metadata":{"annotations":{"example.com/fill":"yes"}},"data":{"user":"1"}}`, func(s *story) { s.puts(driver, widget).puts(one, overwritten) }, ""},
		"a common label does not ask for it": {`ConfigMap default/child {"metadata":{"labels":{"app":"w","app.kubernetes.io/name":"w"}},"data":{"user":"1"}}`, func(s *story) { s.puts(driver, widget).puts(one, overwritten) }, "TAKEN OVER"},
		"a selector selects it":              {`ConfigMap default/child {"metadata":{"labels":{"app":"w"}},"data":{"user":"1"}}`, func(s *story) { s.puts(driver, selecting).puts(one, adopted) }, ""},
		"it was deleted and its name is free": {mine, func(s *story) {
			s.puts(driver, widget).deletes(driver, "ConfigMap default/child").puts(one, owned("child", "")).puts(one, owned("child", `"labels":{"x":"y"},`))
		}, ""},
		"the resource itself": {widget, func(s *story) { s.puts(one, `Widget.x default/w {"spec":{"n":5}}`) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, given := object(t, tt.given)
			sc := scene()
			sc.Steps = sc.Steps[:2] // nothing is deleted, so nothing can be left over
			sc.Given = []scenario.Manifest{{Object: given}}
			var inputs []*input
			for range 3 {
				s := tell(t)
				s.step("(start)").puts(driver, tt.given).step("create")
				if name != changesOnly {
					s.puts(one, owned("another", "")) // the controller makes ConfigMaps
				}
				tt.story(s)
				inputs = append(inputs, newInput(&Reference{Scenario: sc}, s.end(), &subject.Subject{Primary: []string{"Widget.x"}}))
			}
			if got := takenAlone(inputs); verdicts(got) != tt.want {
				t.Errorf("%q, want %q: %+v", verdicts(got), tt.want, got)
			}
		})
	}
}
