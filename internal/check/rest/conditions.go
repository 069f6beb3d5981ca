package rest

import "time"

// Reason is a reason why the world is not at rest, as a clause for messages.
type Reason string

// These are the reasons, in the order in which Decide examines them.
const (
	Succession  Reason = "the controller waits until it can become the leader"
	Ending      Reason = "the controller was asked to exit, and is shutting down"
	Away        Reason = "the API server cannot be used"
	Reopening   Reason = "the controller has not opened all its watches again since the API server is back"
	Loading     Reason = "the controller has made no request yet"
	Discovering Reason = "the controller is still asking for the APIs of the cluster"
	Starting    Reason = "the controller is being started"
	InFlight    Reason = "a request of the controller has not been answered"
	Unfinished  Reason = "a Job controller has yet to record a result"
	Watches     Reason = "the controller has not opened all its watches"
	Changes     Reason = "objects keep changing"
	Pending     Reason = "a Pod has a node, but has not started"
	Behind      Reason = "the controller has not observed the current generation of an object"
	Polling     Reason = "the controller has not polled again since the last change"
	Lingering   Reason = "the controller has not written anything in this step"
	Asking      Reason = "the controller keeps sending requests"
	Waking      Reason = "the controller has not written anything since its restart"
	Tail        Reason = "the controller was restarted only a moment ago"
)

// timed is a condition that ends by itself after some time.
type timed struct {
	why  Reason
	left func(*Observation, *Settings) time.Duration
}

// excuses are the conditions for which the controller is not responsible.
var excuses = []timed{
	{Succession, func(o *Observation, _ *Settings) time.Duration { return o.Succession }},
	{Ending, func(o *Observation, _ *Settings) time.Duration { return o.Ending }},
	{Away, func(o *Observation, _ *Settings) time.Duration { return o.Away }},
	{Loading, loading},
	{Discovering, discovering},
	{Reopening, reopening},
}

// blockers are the conditions that only an event can end.
var blockers = []struct {
	why   Reason
	holds func(*Observation, *Settings) bool
}{
	{Starting, func(o *Observation, _ *Settings) bool { return o.Starting }},
	{InFlight, func(o *Observation, _ *Settings) bool { return o.InFlight > 0 }},
	{Unfinished, func(o *Observation, _ *Settings) bool { return o.Unfinished > 0 }},
	{Watches, opening},
}

// waits are the conditions that end if nothing happens for some time.
var waits = []timed{
	{Changes, func(o *Observation, s *Settings) time.Duration { return s.Window - o.Still }},
	{Pending, pending},
	{Behind, behind},
	{Polling, polling},
	{Lingering, lingering},
	{Asking, asking},
	{Waking, waking},
	{Tail, tail},
}

// longestLoad limits how long a process may take before its first request, unless a step may take
// longer. How long an interpreter takes to load depends mostly on how busy the machine is. While it
// is loading, the process cannot have read the state of the world.
const longestLoad = 20 * time.Second

func loading(o *Observation, s *Settings) time.Duration {
	if o.Unheard == 0 || o.Up >= max(s.Timeout, longestLoad) {
		return 0
	}
	return s.Window
}

// longestDiscovery limits how long a controller may ask for the APIs of the cluster before anything else:
// client-go before v0.26 asks for each version of each group, and sends five requests a second.
// discoveryPause is the longest pause between two of these requests.
const (
	longestDiscovery = 45 * time.Second
	discoveryPause   = time.Second
)

func discovering(o *Observation, s *Settings) time.Duration {
	if !o.Discovering || o.Down || o.Up >= longestDiscovery || o.Asked >= discoveryPause {
		return 0
	}
	return s.Window
}

// longestReopening limits how long a client may take to open its watches again after an outage of a few
// seconds. client-go doubles its pauses and adds up to the whole pause at random, which is up to 7 s
// after an outage of 5 s; other clients do the same with other numbers.
const longestReopening = 15 * time.Second

func reopening(o *Observation, s *Settings) time.Duration {
	if o.Back == 0 || o.Back >= longestReopening || o.Streams >= s.Streams || o.Down {
		return 0
	}
	return s.Window
}

// UpTimeout limits how long a controller may take to open its watches. A controller that
// only polls never opens a watch.
const UpTimeout = 3 * time.Second

func opening(o *Observation, s *Settings) bool {
	return !o.Down && o.Streams < s.Streams && (o.Up < UpTimeout || o.Unheard > 0)
}

// longestPending limits how long rest waits for a Pod to start. A Pod may stay pending for
// good, for example on a node that does not exist.
const longestPending = 3 * time.Second

func pending(o *Observation, _ *Settings) time.Duration {
	if o.Pending == 0 {
		return 0
	}
	return longestPending - o.Still
}

// longestBehind limits how long rest waits until a controller has observed the current generation of an
// object. A controller may work on its queue for that long, without a request: the operators of Percona, for
// example, try for ten seconds to connect to a Pod.
const longestBehind = 15 * time.Second

func behind(o *Observation, s *Settings) time.Duration {
	if o.Behind == 0 || o.Down {
		return 0
	}
	return min(longestBehind, s.Timeout*3/4) - o.Still
}

// LongestRound limits how long rest waits for the next round of a controller that polls.
const LongestRound = 10 * time.Second

// polling waits until a controller without watches has sent the same requests twice since the last
// change, which shows that it did nothing between these requests.
func polling(o *Observation, s *Settings) time.Duration {
	if !o.Polls || o.Round || o.Down {
		return 0
	}
	return min(LongestRound, half(s)) - o.Still
}

// longestLinger limits how long a learning run waits for a controller that has not written
// anything in a step yet. Only such a run waits that long, because no earlier run shows how
// long the controller pauses.
const longestLinger = 4 * time.Second

func lingering(o *Observation, s *Settings) time.Duration {
	if !s.Learning || o.Wrote {
		return 0
	}
	return min(longestLinger, half(s)) - o.Still
}

// half limits each of the long waits to half of the timeout.
func half(s *Settings) time.Duration { return s.Timeout / 2 }

// silence is the time that must also pass without a request. If a controller never stops
// sending requests, rest waits for at most maxAsking windows, or until the controller has
// been up for UpTimeout.
const (
	silence   = 40 * time.Millisecond
	maxAsking = 6
)

func asking(o *Observation, s *Settings) time.Duration {
	if o.Still >= maxAsking*s.Window && o.Up >= UpTimeout {
		return 0
	}
	return silence - o.Asked
}

// longestWaking is the longest time between a restarted controller's last request, usually
// a watch, and its first write. client-go checks its caches one after the other, each only
// every 100 ms.
const longestWaking = 300 * time.Millisecond

func waking(o *Observation, _ *Settings) time.Duration {
	if o.WroteSinceUp || !o.Knocked || o.Up >= UpTimeout {
		return 0
	}
	return longestWaking - min(o.Asked, o.Up)
}

// tail keeps observing a controller after a kill, because it may still destroy something
// after the state is right.
func tail(o *Observation, s *Settings) time.Duration {
	if !o.Knocked || o.Down {
		return 0
	}
	return s.Tail - o.Up
}
