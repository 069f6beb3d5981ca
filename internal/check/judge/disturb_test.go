package judge

import (
	"fmt"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
)

func TestADisturbanceShowsWhichCountersMayAdvance(t *testing.T) {
	status := func(boots int, seen string, extra string) string {
		return fmt.Sprintf(`Widget.x default/w {"spec":{"n":1},"status":{"boots":%d,"seen":%s%s}}`, boots, seen, extra)
	}
	begin := func(s *story, status string) *story {
		return s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, status)
	}
	for name, tt := range map[string]struct {
		disturbed string
		other     bool // the disturbed run also lacks the child
		faulty    string
		want      string
	}{
		"nothing is known about the field":       {status(1, `["a"]`, ""), false, status(2, `["a"]`, ""), "DIVERGED"},
		"a counter advances":                     {status(2, `["a"]`, ""), false, status(5, `["a"]`, ""), ""},
		"a counter goes back":                    {status(2, `["a"]`, ""), false, status(0, `["a"]`, ""), "DIVERGED"},
		"a list gets longer":                     {status(1, `["a","b"]`, ""), false, status(1, `["a","c","d"]`, ""), ""},
		"a list gets shorter":                    {status(1, `["a","b"]`, ""), false, status(1, `[]`, ""), "DIVERGED"},
		"another field":                          {status(2, `["a"]`, ""), false, status(2, `["a"]`, `,"ready":false`), "DIVERGED"},
		"a field that the disturbance sets":      {status(1, `["a"]`, `,"ready":false`), false, status(1, `["a"]`, `,"ready":false`), "DIVERGED"},
		"a disturbance that shows a bug as well": {status(2, `["a"]`, ""), true, status(2, `["a"]`, ""), "DIVERGED"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reference(t, scene(), func(s *story) { begin(s, status(1, `["a"]`, "")) })
			disturbed := begin(tell(t), tt.disturbed)
			if tt.other {
				disturbed.deletes(one, "ConfigMap default/child")
			}
			r.Disturb(disturbed.end())
			s := begin(tell(t), tt.faulty)
			s.healed(evidence.Never)
			if got := Judge(r, s.after(do(fault.Restart, "create", "")), nil); verdicts(got) != tt.want {
				t.Errorf("%q, want %q: %+v", verdicts(got), tt.want, got)
			}
		})
	}
}
