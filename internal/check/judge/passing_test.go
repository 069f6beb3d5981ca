package judge

import (
	"fmt"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
)

func TestTheConditionOfAPassingStateMayBeMissing(t *testing.T) {
	with := func(conditions string) string {
		return `Widget.x default/w {"spec":{"n":1},"status":{"conditions":[` + conditions + `]}}`
	}
	condition := func(kind, status string) string { return fmt.Sprintf(`{"type":%q,"status":%q}`, kind, status) }
	both := func(progressing, available string) string {
		return with(condition("Progressing", progressing) + "," + condition("Available", available))
	}
	only := with(condition("Available", "True"))
	for name, tt := range map[string]struct {
		reference []string // the statuses in the reference
		got       string
		want      string
	}{
		"it was True on the way":         {[]string{both("True", "False"), both("False", "True")}, only, ""},
		"it was never True":              {[]string{both("False", "True")}, only, "DIVERGED"},
		"it is True at last":             {[]string{both("False", "False"), both("True", "True")}, only, "DIVERGED"},
		"it is there, and True":          {[]string{both("True", "False"), both("False", "True")}, both("True", "True"), "DIVERGED"},
		"the other condition is missing": {[]string{both("True", "False"), both("False", "True")}, with(condition("Progressing", "False")), "DIVERGED"},
	} {
		r := reference(t, scene(), func(s *story) {
			s.step("create").puts(driver, widget)
			for _, status := range tt.reference {
				s.puts(one, status)
			}
		})
		s := tell(t)
		s.step("create").puts(driver, widget).puts(one, tt.got).healed(evidence.Never)
		if got := verdicts(Judge(r, s.after(do(fault.Restart, "create", "")), nil)); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}

func TestAConditionThatWasTrueAtRestMayNotBeMissing(t *testing.T) {
	ready := func(n int, status string) string {
		return fmt.Sprintf(`Widget.x default/w {"spec":{"n":%d},"status":{"conditions":[{"type":"Ready","status":%q}]}}`, n, status)
	}
	begin := func(s *story) *story { return s.step("create").puts(driver, widget).puts(one, ready(1, "True")) }
	r := reference(t, scene(), func(s *story) { begin(s).step("change").puts(driver, ready(2, "True")).puts(one, ready(2, "False")) })
	s := begin(tell(t)).step("change").puts(driver, `Widget.x default/w {"spec":{"n":2},"status":{"conditions":[]}}`).healed(evidence.Never)
	if got := verdicts(Judge(r, s.after(do(fault.Restart, "change", "")), nil)); got != "DIVERGED" {
		t.Errorf("the verdict is %q", got)
	}
}
