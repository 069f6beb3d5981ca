package judge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
)

const leaseName = "Lease.coordination.k8s.io default/beat"

// beat returns a Lease that the widget owns.
func beat(holder, renewed string, seconds int) string {
	return fmt.Sprintf(`%s {"metadata":{"owner:Widget.x default/w"},"spec":{"holderIdentity":%q,"leaseDurationSeconds":%d,"renewTime":%q}}`,
		leaseName, holder, seconds, renewed)
}

func TestALeaseThatIsAProductIsComparedWithoutItsRenewals(t *testing.T) {
	made := func(s *story) { s.puts(one, beat("w", "1", 30)) }
	for name, tt := range map[string]struct {
		learnt, story func(s *story)
		want          string
	}{
		"it is renewed":  {made, func(s *story) { s.puts(one, beat("w", "1", 30)).puts(one, beat("w", "2", 30)) }, ""},
		"it is missing":  {made, func(*story) {}, leaseName + " is missing"},
		"it is too long": {made, func(s *story) { s.puts(one, beat("w", "1", 60)) }, "spec.leaseDurationSeconds 60 instead of 30"},
		"it is renewed in the references": {func(s *story) { s.puts(one, beat("w", "1", 30)).puts(one, beat("w", "2", 30)) },
			func(*story) {}, leaseName + " is missing"},
		"a lock": {func(s *story) { s.puts(one, beat("w", "1", 30)).puts(one, beat("", "1", 30)) },
			func(s *story) { s.puts(one, beat("w", "1", 30)) }, ""},
		"a lock that is deleted": {func(s *story) { s.puts(one, beat("w", "1", 30)).deletes(one, leaseName) },
			func(s *story) { s.puts(one, beat("w", "1", 30)) }, ""},
		"an election":            {func(s *story) { s.puts(one, leaseName+` {"spec":{"holderIdentity":"a"}}`) }, func(*story) {}, ""},
		"another client's":       {func(s *story) { s.puts(driver, beat("w", "1", 30)) }, func(*story) {}, ""},
		"its owner is not there": {func(s *story) { s.puts(one, strings.Replace(beat("w", "1", 30), "default/w", "default/none", 1)) }, func(*story) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			learnt := reference(t, scene(), func(s *story) {
				tt.learnt(s.step("create").puts(driver, widget))
			})
			s := tell(t).step("create").puts(driver, widget)
			tt.story(s)
			if tt.want != "" {
				s.healed(evidence.Never)
			}
			got := Judge(learnt, s.after(do(fault.Restart, "create", "")), nil)
			switch {
			case tt.want == "" && len(got) == 0:
			case tt.want == "" || len(got) != 1 || !strings.Contains(got[0].Sentence, tt.want):
				t.Errorf("%s, want %q: %+v", verdicts(got), tt.want, got)
			}
		})
	}
}
