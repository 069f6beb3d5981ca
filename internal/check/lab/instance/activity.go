package instance

import "time"

// Activity describes what all instances are doing.
type Activity struct {
	Instances   int
	Unheard     int // instances that have made no request yet
	Exits       int // how often an instance has exited on its own
	Starting    bool
	Discovering bool          // an instance has only asked which APIs there are
	Ending      time.Duration // how long instances that were asked to exit may still take
	Electing    bool          // an instance has requested a Lease
	InFlight    int           // requests that have not been answered
	LastRequest time.Time
	AskedAgain  time.Time
	Writes      int64
	Streams     int // the number of open watches of the instance that has the fewest
	// Begun is the time when an instance was last started. Once this instance has made a
	// request, Begun is the time of its first request, so that the time for loading an
	// interpreter does not count.
	Begun time.Time
}

// Activity returns what all instances are doing, and the error that ends the run, if any.
func (c *Set) Activity() (Activity, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := Activity{Instances: len(c.up), Exits: c.exits, Starting: c.starting > 0, Begun: c.begun}
	if !c.ending.IsZero() {
		a.Ending = max(time.Until(c.ending), 0)
	}
	for n, i := range c.up {
		p := i.proxy.Activity()
		a.InFlight += p.InFlight
		a.Writes += p.Writes
		a.Electing = a.Electing || p.Electing
		a.Discovering = a.Discovering || !p.FirstRequest.IsZero() && p.FirstUse.IsZero()
		switch {
		case p.FirstRequest.IsZero():
			a.Unheard++
		case p.FirstRequest.After(a.Begun):
			a.Begun = p.FirstRequest
		}
		if p.LastRequest.After(a.LastRequest) {
			a.LastRequest = p.LastRequest
		}
		if p.AskedAgain.After(a.AskedAgain) {
			a.AskedAgain = p.AskedAgain
		}
		if streams := len(p.Streams); n == 0 || streams < a.Streams {
			a.Streams = streams
		}
	}
	return a, c.failure
}
