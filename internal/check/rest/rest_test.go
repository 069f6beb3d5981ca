package rest

import (
	"testing"
	"time"
)

const ms = time.Millisecond

var settings = Settings{Window: 100 * ms, Streams: 2, Timeout: 20 * time.Second}

// quiet returns an observation of a world that has been at rest for a minute.
func quiet() Observation {
	return Observation{
		Streams: 2, Still: time.Minute, Up: time.Minute, Asked: time.Minute, Round: true, Wrote: true, WroteSinceUp: true,
	}
}

func TestQuietWorldIsAtRest(t *testing.T) {
	if v := Decide(quiet(), settings); !v.AtRest() || v.Why != "" || v.Excused != 0 {
		t.Errorf("%+v", v)
	}
}

// condition is one row of a condition's table.
type condition struct {
	name   string
	change func(*Observation, *Settings)
	left   time.Duration // 0 means that the world is at rest
}

func examine(t *testing.T, why Reason, rows []condition) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			o, s := quiet(), settings
			row.change(&o, &s)
			v := Decide(o, s)
			if v.Left != row.left {
				t.Errorf("the wait is %v (%s), want %v", v.Left, v.Why, row.left)
			}
			if row.left > 0 && v.Why != why {
				t.Errorf("the reason is %q, want %q", v.Why, why)
			}
		})
	}
}

func TestRestWaitsUntilTheLeaseOfAGoneHolderExpires(t *testing.T) {
	examine(t, Succession, []condition{
		{"a Lease lasts", func(o *Observation, _ *Settings) { o.Succession = 5 * time.Second }, 5 * time.Second},
		{"even if a request is in flight", func(o *Observation, _ *Settings) { o.Succession, o.InFlight = time.Second, 1 }, time.Second},
	})
}

func TestRestWaitsWhileTheControllerIsShuttingDown(t *testing.T) {
	examine(t, Ending, []condition{
		{"it may take two more seconds", func(o *Observation, _ *Settings) { o.Ending = 2 * time.Second }, 2 * time.Second},
		{"a new instance follows", func(o *Observation, _ *Settings) { o.Ending, o.Starting = time.Second, true }, time.Second},
	})
}

func TestRestWaitsWhileTheServerCannotBeReached(t *testing.T) {
	examine(t, Away, []condition{
		{"for two more seconds", func(o *Observation, _ *Settings) { o.Away, o.Streams = 2*time.Second, 0 }, 2 * time.Second},
	})
}

func TestRestWaitsForWatchesAfterAnOutage(t *testing.T) {
	examine(t, Reopening, []condition{
		{"one is missing", func(o *Observation, _ *Settings) { o.Back, o.Streams = time.Second, 1 }, settings.Window},
		{"one stays missing", func(o *Observation, _ *Settings) { o.Back, o.Streams = longestReopening, 1 }, 0},
		{"all are open", func(o *Observation, _ *Settings) { o.Back = time.Second }, 0},
		{"the controller is down", func(o *Observation, _ *Settings) { o.Back, o.Streams, o.Down = time.Second, 0, true }, 0},
	})
}

func TestRestWaitsWhileAnInterpreterLoads(t *testing.T) {
	examine(t, Loading, []condition{
		{"no request yet", func(o *Observation, _ *Settings) { o.Unheard, o.Up = 1, time.Second }, settings.Window},
		{"it never asks", func(o *Observation, _ *Settings) { o.Unheard, o.Up = 1, longestLoad; o.Streams = 3 }, 0},
		{"a step may take longer", func(o *Observation, s *Settings) {
			o.Unheard, o.Up, s.Timeout = 1, longestLoad, 2*longestLoad
		}, settings.Window},
	})
}

func TestRestWaitsWhileOldClientsAskForTheAPIs(t *testing.T) {
	asks := func(o *Observation, _ *Settings) { o.Discovering, o.Up, o.Asked = true, 30*time.Second, 200*ms }
	examine(t, Discovering, []condition{
		{"it asks five times a second", asks, settings.Window},
		{"it has stopped asking", func(o *Observation, s *Settings) { asks(o, s); o.Asked = discoveryPause }, 0},
		{"it never stops", func(o *Observation, s *Settings) { asks(o, s); o.Up, o.Still = longestDiscovery, time.Minute }, 0},
		{"it is down", func(o *Observation, s *Settings) { asks(o, s); o.Down = true }, 0},
	})
}

func TestTimeForLeasesAndLoadingIsExcused(t *testing.T) {
	o := quiet()
	o.Succession = 5 * time.Second
	if v := Decide(o, settings); v.Excused != 5*time.Second {
		t.Errorf("the Lease: %+v", v)
	}
	o = quiet()
	o.Ending = time.Second
	if v := Decide(o, settings); v.Excused != time.Second {
		t.Errorf("the grace period: %+v", v)
	}
	o = quiet()
	o.Away = time.Second
	if v := Decide(o, settings); v.Excused != time.Second {
		t.Errorf("the outage: %+v", v)
	}
	o = quiet()
	o.Unheard, o.Up = 1, time.Second
	if v := Decide(o, settings); v.Excused != settings.Window {
		t.Errorf("loading: %+v", v)
	}
	o = quiet()
	o.InFlight = 1
	if v := Decide(o, settings); v.Excused != 0 {
		t.Errorf("a slow request: %+v", v)
	}
}

func TestRestWaitsForAStartingInstance(t *testing.T) {
	examine(t, Starting, []condition{
		{"starting", func(o *Observation, _ *Settings) { o.Starting = true }, settings.Window},
	})
}

func TestRestWaitsForAnswers(t *testing.T) {
	examine(t, InFlight, []condition{
		{"one request", func(o *Observation, _ *Settings) { o.InFlight = 1 }, settings.Window},
	})
}

func TestRestWaitsForTheJobController(t *testing.T) {
	examine(t, Unfinished, []condition{
		{"a Job", func(o *Observation, _ *Settings) { o.Unfinished = 1 }, settings.Window},
	})
}

func TestRestWaitsForWatches(t *testing.T) {
	examine(t, Watches, []condition{
		{"one is missing", func(o *Observation, _ *Settings) { o.Streams, o.Up = 1, UpTimeout-1 }, settings.Window},
		{"one is missing for long", func(o *Observation, _ *Settings) { o.Streams, o.Up = 1, UpTimeout }, 0},
		{"the controller is down", func(o *Observation, _ *Settings) { o.Streams, o.Up, o.Down = 0, 0, true }, 0},
		{"it never opens any", func(o *Observation, s *Settings) { o.Streams, s.Streams, o.Up = 0, 0, time.Second }, 0},
	})
}

func TestRestWaitsForTheWindowAfterAChange(t *testing.T) {
	examine(t, Changes, []condition{
		{"just now", func(o *Observation, _ *Settings) { o.Still = 0 }, 100 * ms},
		{"a while ago", func(o *Observation, _ *Settings) { o.Still = 60 * ms }, 40 * ms},
		{"a window ago", func(o *Observation, _ *Settings) { o.Still = 100 * ms }, 0},
		{"with a longer window", func(o *Observation, s *Settings) { o.Still, s.Window = 100*ms, time.Second }, 900 * ms},
	})
}

func TestRestWaitsForABoundPodToStart(t *testing.T) {
	examine(t, Pending, []condition{
		{"bound just now", func(o *Observation, _ *Settings) { o.Pending, o.Still = 1, 500*ms }, longestPending - 500*ms},
		{"it never starts", func(o *Observation, _ *Settings) { o.Pending, o.Still = 1, longestPending }, 0},
	})
}

func TestRestWaitsUntilTheCurrentGenerationIsObserved(t *testing.T) {
	isBehind := func(o *Observation, _ *Settings) { o.Behind, o.Still = 1, 3*time.Second }
	examine(t, Behind, []condition{
		{"changed 3 s ago", isBehind, longestBehind - 3*time.Second},
		{"never observed", func(o *Observation, s *Settings) { isBehind(o, s); o.Still = longestBehind }, 0},
		{"the controller is down", func(o *Observation, s *Settings) { isBehind(o, s); o.Down = true }, 0},
		{"a step may take only 8 s", func(o *Observation, s *Settings) { isBehind(o, s); s.Timeout = 8 * time.Second }, 3 * time.Second},
	})
}

func TestRestWaitsForARoundOfPolling(t *testing.T) {
	polls := func(o *Observation, s *Settings) {
		o.Polls, o.Round, o.Streams, s.Streams, o.Still = true, false, 0, 0, time.Second
	}
	examine(t, Polling, []condition{
		{"no round since the change", polls, LongestRound - time.Second},
		{"a round since the change", func(o *Observation, s *Settings) { polls(o, s); o.Round = true }, 0},
		{"it stopped polling", func(o *Observation, s *Settings) { polls(o, s); o.Still = LongestRound }, 0},
		{"it is down", func(o *Observation, s *Settings) { polls(o, s); o.Down = true }, 0},
		{"a step may take only 6 s", func(o *Observation, s *Settings) { polls(o, s); s.Timeout = 6 * time.Second }, 2 * time.Second},
	})
}

func TestLearningRunLingersUntilTheFirstWrite(t *testing.T) {
	learns := func(o *Observation, s *Settings) { s.Learning, o.Wrote, o.Still = true, false, time.Second }
	examine(t, Lingering, []condition{
		{"nothing written", learns, longestLinger - time.Second},
		{"something written", func(o *Observation, s *Settings) { learns(o, s); o.Wrote = true }, 0},
		{"nothing to write", func(o *Observation, s *Settings) { learns(o, s); o.Still = longestLinger }, 0},
		{"in another run", func(o *Observation, s *Settings) { learns(o, s); s.Learning = false }, 0},
		{"a step may take only 6 s", func(o *Observation, s *Settings) { learns(o, s); s.Timeout = 6 * time.Second }, 2 * time.Second},
	})
}

func TestRestWaitsForSilence(t *testing.T) {
	examine(t, Asking, []condition{
		{"a request just now", func(o *Observation, _ *Settings) { o.Asked, o.Still = 10*ms, 200*ms }, silence - 10*ms},
		{"it never stops", func(o *Observation, _ *Settings) { o.Asked, o.Still = 10*ms, maxAsking*settings.Window }, 0},
		{"it never stops, but is young", func(o *Observation, _ *Settings) {
			o.Asked, o.Still, o.Up = 10*ms, maxAsking*settings.Window, UpTimeout-1
		}, silence - 10*ms},
	})
}

func TestRestWaitsForARestartedControllerToWake(t *testing.T) {
	wakes := func(o *Observation, _ *Settings) {
		o.Knocked, o.WroteSinceUp, o.Up, o.Asked = true, false, time.Second, 100*ms
	}
	examine(t, Waking, []condition{
		{"no write since the restart", wakes, longestWaking - 100*ms},
		{"it wrote", func(o *Observation, s *Settings) { wakes(o, s); o.WroteSinceUp = true }, 0},
		{"no fault", func(o *Observation, s *Settings) { wakes(o, s); o.Knocked = false }, 0},
		{"it is up for long", func(o *Observation, s *Settings) { wakes(o, s); o.Up = UpTimeout }, 0},
	})
}

func TestRestIsWatchedForLongerAfterAKill(t *testing.T) {
	killed := func(o *Observation, s *Settings) { o.Knocked, s.Tail, o.Up = true, time.Second, 400*ms }
	examine(t, Tail, []condition{
		{"up for 400 ms", killed, 600 * ms},
		{"up for long enough", func(o *Observation, s *Settings) { killed(o, s); o.Up = time.Second }, 0},
		{"not killed yet", func(o *Observation, s *Settings) { killed(o, s); o.Knocked = false }, 0},
		{"in a run without a tail", func(o *Observation, s *Settings) { killed(o, s); s.Tail = 0 }, 0},
	})
}

func TestTheLongestWaitCounts(t *testing.T) {
	o, s := quiet(), settings
	o.Still, o.Wrote, s.Learning = 0, false, true
	if v := Decide(o, s); v.Why != Lingering || v.Left != longestLinger {
		t.Errorf("%+v", v)
	}
}
