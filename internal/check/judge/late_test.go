package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
)

func TestAStateThatBecomesRightWithTheTimeoutOfTheWatchesIsOnlyLate(t *testing.T) {
	r := reference(t, scene(), plain)
	late := func(t *testing.T) *story {
		s := tell(t)
		s.step("create").puts(driver, widget).puts(one, generated("run-bbbbb")).begins(evidence.TimeOut).puts(one, owned("child", "")).healed(evidence.TimeOut)
		s.rest().Period = 5 * time.Minute
		return s
	}
	found := Judge(r, late(t).after(killedAt("create")), nil)
	if verdicts(found) != "RECOVERED LATE" || !found[0].Verdict.IsRemark() {
		t.Fatalf("the findings are %+v", found)
	}
	if want := "ConfigMap default/child is missing, until the controller watches again, after up to 5m0s"; !strings.Contains(found[0].Sentence, want) {
		t.Errorf("the sentence is %q", found[0].Sentence)
	}
	twice := late(t)
	twice.deletes(one, "ConfigMap default/child").puts(one, owned("child", ""))
	twice.rest().Rested = twice.rev
	if got := verdicts(Judge(r, twice.after(killedAt("create")), nil)); !strings.Contains(got, "DESTRUCTIVE BLIP") {
		t.Errorf("a late state in which an object is also deleted is %q", got)
	}
	worse := late(t)
	worse.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`).healed(evidence.Never)
	if got := verdicts(Judge(r, worse.after(killedAt("create")), nil)); got != "DIVERGED" {
		t.Errorf("a later state that stays wrong is %q", got)
	}
}

func TestAStateThatBecomesRightWithoutHelpAfterALongTimeIsOnlyLate(t *testing.T) {
	s := tell(t)
	s.step("create").puts(driver, widget).puts(one, generated("run-bbbbb")).begins(evidence.Later).puts(one, owned("child", "")).healed(evidence.Later)
	s.rest().Period = 31 * time.Second
	found := Judge(reference(t, scene(), plain), s.after(killedAt("create")), nil)
	if verdicts(found) != "RECOVERED LATE" {
		t.Fatalf("the findings are %+v", found)
	}
	if want := "ConfigMap default/child is missing, until the controller tries again on its own, after 31s"; !strings.Contains(found[0].Sentence, want) {
		t.Errorf("the sentence is %q", found[0].Sentence)
	}
}
