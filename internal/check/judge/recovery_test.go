package judge

import (
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestTheTimeToRecoverBeginsWhenOnlyTheControllerIsLeft(t *testing.T) {
	at := func(second int, e trace.Entry) trace.Entry {
		e.At = time.Duration(second) * time.Second
		return e
	}
	note := func(what string) trace.Entry { return trace.Entry{Fault: &trace.Fault{What: what}} }
	process := func(what string) trace.Entry { return trace.Entry{Process: &trace.Process{What: what}} }
	injected := trace.Entry{Call: &trace.Call{Code: 500, Injected: true}}
	answered := trace.Entry{Call: &trace.Call{Code: 200}}
	for name, tt := range map[string]struct {
		entries []trace.Entry
		healed  evidence.Stage
		want    float64 // seconds; negative if the state never became right
	}{
		"at the fault":                 {[]trace.Entry{at(12, note("applied")), at(20, answered), at(25, note("wait")), at(30, note("later"))}, evidence.Later, 28},
		"when the fault ends":          {[]trace.Entry{at(12, note("applied")), at(15, note("ended")), at(25, note("wait"))}, evidence.Relist, 25},
		"with the last error":          {[]trace.Entry{at(12, note("applied")), at(12, injected), at(17, injected), at(25, note("wait"))}, evidence.Poke, 23},
		"with the new instance":        {[]trace.Entry{at(12, note("applied")), at(12, process("killed")), at(14, process("started")), at(25, note("wait"))}, evidence.Later, 26},
		"not with a restart as help":   {[]trace.Entry{at(12, note("applied")), at(25, note("wait")), at(30, note("restart")), at(30, process("killed")), at(31, process("started"))}, evidence.Restart, 28},
		"not with an exit":             {[]trace.Entry{at(12, note("applied")), at(13, process("exited")), at(14, process("started")), at(25, note("wait"))}, evidence.Later, 28},
		"with the step, if it is late": {[]trace.Entry{at(3, note("applied")), at(4, note("wait")), at(25, note("wait"))}, evidence.Later, 30},
		"not after the step":           {[]trace.Entry{at(12, note("applied")), at(50, note("ended"))}, evidence.Later, 28},
		"the end is not known":         {[]trace.Entry{at(12, note("applied")), at(25, note("timeout"))}, evidence.TimeOut, 0},
		"it was right at once":         {[]trace.Entry{at(12, note("applied"))}, evidence.AtOnce, 0},
		"never":                        {[]trace.Entry{at(12, note("applied")), at(25, note("wait")), at(35, note("poke"))}, evidence.Never, -28},
	} {
		t.Run(name, func(t *testing.T) {
			s := step{Step: evidence.Step{BeganAt: 10 * time.Second, RestedAt: 40 * time.Second, Healed: tt.healed}}
			in := &input{run: &evidence.Run{Fault: &fault.Fault{Kind: fault.KillLost}, Entries: tt.entries}}
			f := in.timed(Finding{}, s)
			if got := f.RecoveredAfterSeconds - f.UnrecoveredSeconds; got != tt.want || f.RecoveredAfterSeconds*f.UnrecoveredSeconds != 0 {
				t.Errorf("recovered after %vs, not within %vs; want %v", f.RecoveredAfterSeconds, f.UnrecoveredSeconds, tt.want)
			}
		})
	}
}

func TestAFindingOfAHealedStepHasTheTimeOfItsRecovery(t *testing.T) {
	s := tell(t)
	s.step("create").puts(driver, widget).entry(trace.Entry{Fault: &trace.Fault{What: "applied"}})
	s.puts(one, generated("run-bbbbb")).begins(evidence.Later).puts(one, owned("child", "")).healed(evidence.Later)
	s.rest().RestedAt = s.at + time.Minute
	found := Judge(reference(t, scene(), plain), s.after(killedAt("create")), nil)
	if len(found) != 1 || found[0].RecoveredAfterSeconds < 60 || found[0].RecoveredAfterSeconds > 61 {
		t.Errorf("%+v", found)
	}
	wrong := tell(t)
	wrong.step("create").puts(driver, widget).puts(one, generated("run-bbbbb")).healed(evidence.Never)
	wrong.rest().RestedAt = wrong.at + time.Minute
	found = Judge(reference(t, scene(), plain), wrong.after(killedAt("create")), nil)
	if len(found) != 1 || found[0].UnrecoveredSeconds < 60 || found[0].RecoveredAfterSeconds != 0 {
		t.Errorf("%+v", found)
	}
}
