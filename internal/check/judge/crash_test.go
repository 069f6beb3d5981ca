package judge

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestAnOutageExplainsOnlyTheExitsOfInstancesThatWereCutOff(t *testing.T) {
	r := reference(t, scene(), func(s *story) { s.step("create").puts(driver, widget) })
	starts := func(s *story, who string) {
		s.tick()
		s.entry(trace.Entry{Instance: who, Process: &trace.Process{What: "started"}})
	}
	for name, tt := range map[string]struct {
		tell func(*story)
		want string
	}{
		"an exit before the outage": {func(s *story) {
			starts(s, one)
			s.exits(one, 1, "bye").begins("applied").begins("ended")
		}, "CRASHED"},
		"an exit long after the outage, because of it": {func(s *story) {
			starts(s, one)
			s.begins("applied").begins("ended").exits(one, 1, "the caches did not sync in time")
		}, ""},
		"an exit of an instance that was started after the outage": {func(s *story) {
			s.begins("applied").begins("ended")
			starts(s, two)
			s.exits(two, 1, "bye")
		}, "CRASHED"},
	} {
		for _, kind := range []fault.Kind{fault.Outage, fault.OfflineStart} {
			s := tell(t)
			tt.tell(s.step("create").puts(driver, widget))
			if got := verdicts(Judge(r, s.after(do(kind, "create", "")), nil)); got != tt.want {
				t.Errorf("%s, with %s: %q, not %q", name, kind, got, tt.want)
			}
		}
	}
}

func TestExitsBecauseOfAWriteThatIsRefusedWithoutTheWebhooksAreNoCrash(t *testing.T) {
	r := reference(t, scene(), func(s *story) { s.step("create").puts(driver, widget) })
	refused := func(s *story, who string) {
		s.tick()
		s.call(who, "update", cm("child"), 500, 0)
		s.exits(who, 1, "unable to update the ConfigMap: failed calling webhook")
	}
	for name, tt := range map[string]struct {
		kind fault.Kind
		tell func(*story)
		want string
	}{
		"while they are down":      {fault.WebhookDown, func(s *story) { s.begins("applied"); refused(s, one); refused(s, two); s.begins("ended") }, ""},
		"after they are back":      {fault.WebhookDown, func(s *story) { s.begins("applied").begins("ended"); refused(s, one); refused(s, two) }, "CRASHED"},
		"because of another fault": {fault.Conflict, func(s *story) { s.begins("applied"); refused(s, one); refused(s, two) }, "CRASHED"},
	} {
		s := tell(t)
		tt.tell(s.step("create").puts(driver, widget))
		if got := verdicts(Judge(r, s.after(do(tt.kind, "create", "")), nil)); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}

func TestTheFindingOfAnExitWithoutOutputSaysSo(t *testing.T) {
	r := reference(t, scene(), func(s *story) { s.step("create").puts(driver, widget) })
	s := tell(t)
	s.step("create").puts(driver, widget).exits(one, 3, "")
	found := Judge(r, s.after(killedAt("create")), nil)
	if len(found) != 1 || !strings.HasSuffix(found[0].Sentence, ": the controller exits once, with code 3: it printed nothing") {
		t.Errorf("%+v", found)
	}
}
