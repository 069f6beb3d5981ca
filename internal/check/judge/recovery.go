package judge

import (
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
)

// timed adds to a finding how long after the fault the state of a step was right, or how long it had
// been wrong when Koboshi gave up. The time until the end of watches is not known, because Koboshi ends
// watches early.
func (in *input) timed(f Finding, s step) Finding {
	took := s.RestedAt - faultEnd(in.run, s.Step)
	if in.run.Fault == nil || s.RestedAt == 0 || took <= 0 {
		return f
	}
	switch s.Healed {
	case evidence.Never:
		f.UnrecoveredSeconds = took.Round(time.Millisecond).Seconds()
	case evidence.Later, evidence.Relist, evidence.Restart, evidence.Poke:
		f.RecoveredAfterSeconds = took.Round(time.Millisecond).Seconds()
	}
	return f
}

// faultEnd returns the time from which nothing but the controller keeps the state of a step wrong: the
// fault has ended, an instance that was killed has been started again, and the step has begun. What
// happens after the first stage of healing is not part of the fault.
func faultEnd(run *evidence.Run, s evidence.Step) time.Duration {
	end, killed := s.BeganAt, false
	for _, e := range run.Entries {
		if e.At > s.RestedAt {
			break
		}
		switch {
		case e.Fault != nil && (e.Fault.What == "applied" || e.Fault.What == "ended"):
			end = max(end, e.At)
		case e.Fault != nil && isHelp(evidence.Stage(e.Fault.What)) && e.At >= s.BeganAt:
			return end
		case e.Call != nil && e.Call.Injected:
			end = max(end, e.At)
		case e.Process != nil && (e.Process.What == "killed" || e.Process.What == "ended"):
			killed = true
		case e.Process != nil && e.Process.What == "started" && killed:
			end, killed = max(end, e.At), false
		}
	}
	return end
}

// isHelp reports whether a stage of healing gives the controller more than its first chance.
func isHelp(s evidence.Stage) bool {
	switch s {
	case evidence.Wait, evidence.Later, evidence.TimeOut, evidence.Relist, evidence.Restart, evidence.Poke:
		return true
	}
	return false
}
