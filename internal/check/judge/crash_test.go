package judge

import (
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
