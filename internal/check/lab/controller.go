package lab

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/broadcast"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// slots is the number of instances of a controller that may run at the same time.
const slots = 2

const (
	// A controller is no longer restarted after maxExits exits, and not before exitsFor has
	// passed since the first one, because a controller may exit until something that it
	// needs exists. The pause before a restart doubles from exitPause to maxExitPause, as a
	// kubelet's does.
	maxExits     = 6
	exitsFor     = 20 * time.Second
	exitPause    = 50 * time.Millisecond
	maxExitPause = 2 * time.Second
	// logTail is the number of bytes kept from the end of a controller's output.
	logTail = 64 << 10
)

// controller manages the subject in one run: its instances, usually one at a time.
// Like a kubelet, it restarts an instance that exits on its own.
//
//	start ──▶ up ──kill──▶ gone
//	           │
//	           └─exits──▶ pause ──▶ start (until gone)
type controller struct {
	ctx      context.Context
	log      *trace.Log
	decider  apiproxy.Decider
	output   *output.Tail
	upstream *rest.Config // the API server and the controller's identity
	// spec prepares the process of the instance in a slot, which finds the cluster with the
	// kubeconfig.
	spec func(slot int, kubeconfig []byte) (process.Spec, error)
	// release is called before an instance starts after all others are gone.
	release func()
	hint    string // a limit of this system that may explain an exit
	touched broadcast.Signal
	work    sync.WaitGroup
	turn    sync.Mutex // held by the one restart in progress

	mu       sync.Mutex
	up       []*instance
	started  int
	starting int
	kills    int // a start or restart that began before the last kill is no longer wanted
	exits    int
	exited   time.Time  // when an instance first exited on its own
	last     *GoneError // describes the last exit
	failure  error
	closed   bool
	begun    time.Time // when an instance was last started
	ready    func(*apiproxy.Proxy)
}

// instance is one process with its own proxy to the cluster.
type instance struct {
	name   string
	slot   int
	proxy  *apiproxy.Proxy
	proc   *process.Process
	deaf   *deaf
	killed bool
}

// start starts an instance and returns once it is running.
func (c *controller) start(slot int) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.started++
	c.starting++
	kills := c.kills
	name := fmt.Sprintf("controller-%d", c.started)
	c.begun = time.Now()
	c.mu.Unlock()

	i, err := c.launch(name, slot)
	if err == nil && c.entered(i, kills) {
		i.proc.Kill()
		c.record(i, trace.Process{What: "killed", PID: i.proc.PID()})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting--
	defer c.touched.Fire()
	if err != nil {
		c.failure = fmt.Errorf("starting the controller: %w", err)
		return c.failure
	}
	return nil
}

// entered adds an instance that is now running, and reports whether all instances were
// killed while it was being started.
func (c *controller) entered(i *instance, kills int) (killed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i.killed = c.kills != kills
	c.up = append(c.up, i)
	c.work.Go(func() { c.follow(i) })
	return i.killed
}

// restart starts an instance after all others are gone. It first releases their Leases.
func (c *controller) restart(slot int) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.release()
	return c.start(slot)
}

func (c *controller) launch(name string, slot int) (*instance, error) {
	i := &instance{name: name, slot: slot, deaf: &deaf{next: c.decider}}
	var err error
	i.proxy, err = apiproxy.Start(c.ctx, apiproxy.Config{Upstream: c.upstream, Instance: name, Log: c.log, Decider: i.deaf})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	ready := c.ready
	c.mu.Unlock()
	if ready != nil {
		ready(i.proxy)
	}
	kubeconfig, err := i.proxy.Kubeconfig()
	if err == nil {
		// JSON is valid YAML, and every language can parse it.
		kubeconfig, err = yaml.YAMLToJSON(kubeconfig)
	}
	if err == nil {
		i.proc, err = c.exec(slot, kubeconfig)
	}
	if err != nil {
		i.proxy.Stop()
		return nil, err
	}
	c.record(i, trace.Process{What: "started", PID: i.proc.PID()})
	return i, nil
}

// exec starts the process of an instance that finds the cluster with the kubeconfig.
func (c *controller) exec(slot int, kubeconfig []byte) (*process.Process, error) {
	spec, err := c.spec(slot, kubeconfig)
	if err != nil {
		return nil, err
	}
	spec.Output = c.output
	return process.Start(c.ctx, spec)
}

func (c *controller) record(i *instance, p trace.Process) {
	c.log.Record(trace.Entry{Instance: i.name, Process: &p})
}

// follow signals the activity of an instance, and restarts the instance if it exits on its
// own.
func (c *controller) follow(i *instance) {
	for {
		select {
		case <-i.proxy.Changed():
			c.touched.Fire()
			continue
		case <-i.proc.Exited():
		}
		break
	}
	i.proxy.Stop()
	c.mu.Lock()
	c.up = slices.DeleteFunc(c.up, func(other *instance) bool { return other == i })
	kills := c.kills
	again := !i.killed && !c.closed
	if again {
		code, printed := i.proc.Exit()
		printed = scrub.Known.Text(printed)
		c.record(i, trace.Process{What: "exited", PID: i.proc.PID(), ExitCode: code, Output: printed})
		if c.exits++; c.exits == 1 {
			c.exited = time.Now()
		}
		c.last = &GoneError{Times: c.exits, Code: code, Said: output.Reason(printed), Hint: c.hint}
		if c.exits >= maxExits && time.Since(c.exited) >= exitsFor {
			c.failure = c.last
			again = false
		}
	}
	pause := pauseAfter(c.exits)
	if again {
		c.starting++ // the world is not at rest until the instance is up again
	}
	c.mu.Unlock()
	c.touched.Fire()
	if !again {
		return
	}
	select {
	case <-time.After(pause):
	case <-c.ctx.Done():
	}
	c.again(i.slot, kills)
}

// again starts an instance after one that exited on its own, unless all instances have been
// killed in the meantime: then a new one is started anyway. The number of kills is that at
// the time of the exit.
func (c *controller) again(slot, kills int) {
	c.turn.Lock()
	defer c.turn.Unlock()
	defer c.touched.Fire()
	c.mu.Lock()
	alone := len(c.up) == 0 && c.starting == 1 // only this restart
	wanted := c.kills == kills
	c.mu.Unlock()
	if wanted && alone {
		c.release()
	}
	c.mu.Lock()
	c.starting--
	wanted = c.kills == kills
	c.mu.Unlock()
	if wanted {
		_ = c.start(slot)
	}
}

// pauseAfter returns the pause before a restart after the given number of exits.
func pauseAfter(exits int) time.Duration {
	return min(exitPause<<min(max(exits-1, 0), 16), maxExitPause)
}

// gone returns a GoneError if the controller keeps exiting, although it may still be
// restarted, and nil otherwise.
func (c *controller) gone() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exits < maxExits {
		return nil
	}
	return c.last
}

// fail ends the run with err.
func (c *controller) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = err
	c.touched.Fire()
}

// kill kills all instances immediately and returns when they are gone. It may be called
// while one of their requests is being answered.
func (c *controller) kill() {
	c.mu.Lock()
	c.kills++
	victims := slices.Clone(c.up)
	for _, i := range victims {
		i.killed = true
	}
	c.mu.Unlock()
	for _, i := range victims {
		i.proc.Kill()
		c.record(i, trace.Process{What: "killed", PID: i.proc.PID()})
	}
}

// killAndStart kills all instances and starts a new one in the background. Until the new
// instance has started, the world does not count as at rest.
func (c *controller) killAndStart() {
	c.mu.Lock()
	c.starting++
	c.mu.Unlock()
	c.kill()
	c.work.Go(func() {
		_ = c.restart(0)
		c.mu.Lock()
		c.starting--
		c.mu.Unlock()
		c.touched.Fire()
	})
}

// close kills all instances and waits for all background work.
func (c *controller) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.kill()
	c.work.Wait()
}

// prepare registers a function that is called with the proxy of each instance before
// the instance starts; nil removes the function.
func (c *controller) prepare(do func(*apiproxy.Proxy)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = do
}

func (c *controller) instances() []*instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.up)
}

// activity summarizes what all instances are doing.
type activity struct {
	instances   int
	unheard     int // instances that have made no request yet
	exits       int // how often an instance has exited on its own
	starting    bool
	electing    bool // an instance has requested a Lease
	inFlight    int
	lastRequest time.Time
	askedAgain  time.Time
	writes      int64
	streams     int // the number of open watches of the instance that has the fewest
	// begun is the time when an instance was last started. Once this instance has made a
	// request, begun is the time of its first request, so that the time for loading an
	// interpreter does not count.
	begun time.Time
}

func (c *controller) activity() (activity, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := activity{instances: len(c.up), exits: c.exits, starting: c.starting > 0, begun: c.begun}
	for n, i := range c.up {
		p := i.proxy.Activity()
		a.inFlight += p.InFlight
		a.writes += p.Writes
		a.electing = a.electing || p.Electing
		switch {
		case p.FirstRequest.IsZero():
			a.unheard++
		case p.FirstRequest.After(a.begun):
			a.begun = p.FirstRequest
		}
		if p.LastRequest.After(a.lastRequest) {
			a.lastRequest = p.LastRequest
		}
		if p.AskedAgain.After(a.askedAgain) {
			a.askedAgain = p.AskedAgain
		}
		if streams := len(p.Streams); n == 0 || streams < a.streams {
			a.streams = streams
		}
	}
	return a, c.failure
}

// proxies calls do with the proxy of each instance.
func (c *controller) proxies(do func(*apiproxy.Proxy)) {
	for _, i := range c.instances() {
		do(i.proxy)
	}
}
