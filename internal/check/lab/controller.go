package lab

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// slots is how many instances of a controller may run at once.
const slots = 2

const (
	// mostExits is how often a controller may end by itself before nobody starts
	// it any more, and exitPause how long after an exit it is started again.
	mostExits = 6
	exitPause = 50 * time.Millisecond
	// logTail is how much of a controller's output is kept, in bytes.
	logTail = 64 << 10
)

// controller is the subject in one run: the instances that are up, one after the
// other, seldom side by side. It starts one that ended by itself again, as a
// kubelet does.
//
//	start ──▶ up ──kill──▶ gone
//	           │
//	           └─exits──▶ pause ──▶ start (six times)
type controller struct {
	lab     *Lab
	ctx     context.Context
	log     *trace.Log
	decider apiproxy.Decider
	env     []string
	args    []string // after the subject's own
	output  *output.Tail
	touched broadcast
	work    sync.WaitGroup

	mu       sync.Mutex
	up       []*instance
	started  int
	starting int
	exits    int
	failure  error
	closed   bool
	begun    time.Time // of the last start
	ready    func(*apiproxy.Proxy)
}

// instance is one process with its way to the cluster.
type instance struct {
	name   string
	slot   int
	proxy  *apiproxy.Proxy
	proc   *process.Process
	deaf   *deaf
	killed bool
}

// start runs an instance and returns without waiting for what it does.
func (c *controller) start(slot int) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.started++
	c.starting++
	name := fmt.Sprintf("controller-%d", c.started)
	c.begun = time.Now()
	c.mu.Unlock()

	i, err := c.launch(name, slot)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting--
	if err != nil {
		c.failure = fmt.Errorf("starting the controller: %w", err)
		c.touched.wake()
		return c.failure
	}
	c.up = append(c.up, i)
	c.work.Go(func() { c.follow(i) })
	c.touched.wake()
	return nil
}

func (c *controller) launch(name string, slot int) (*instance, error) {
	i := &instance{name: name, slot: slot, deaf: &deaf{next: c.decider}}
	var err error
	i.proxy, err = apiproxy.Start(c.ctx, apiproxy.Config{Upstream: c.lab.identity, Instance: name, Log: c.log, Decider: i.deaf})
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
		// JSON is YAML, and every language can read it.
		kubeconfig, err = yaml.YAMLToJSON(kubeconfig)
	}
	if err == nil {
		var path string
		if path, err = c.lab.file(name+".kubeconfig", kubeconfig); err == nil {
			i.proc, err = process.Start(c.ctx, c.spec(path, slot))
		}
	}
	if err != nil {
		i.proxy.Stop()
		return nil, err
	}
	c.record(i, trace.Process{What: "started", PID: i.proc.PID()})
	return i, nil
}

func (c *controller) spec(kubeconfig string, slot int) process.Spec {
	s := c.lab.config.Subject.Expand(map[string]string{subject.Certs: c.lab.certs, subject.Kubeconfig: kubeconfig})
	command := slices.Concat(s.Command, s.Webhook.Args, c.args)
	environ := slices.Concat(s.Env, c.env, []string{"KUBECONFIG=" + kubeconfig})
	return process.Spec{
		Command: command, Dir: s.Dir, Env: environ, Output: c.output, Address: c.lab.address(slot),
	}
}

func (c *controller) record(i *instance, p trace.Process) {
	c.log.Record(trace.Entry{Instance: i.name, Process: &p})
}

// follow wakes those who wait when the instance has done something, and starts
// another when it ends by itself.
func (c *controller) follow(i *instance) {
	for {
		select {
		case <-i.proxy.Changed():
			c.touched.wake()
			continue
		case <-i.proc.Exited():
		}
		break
	}
	i.proxy.Stop()
	c.mu.Lock()
	c.up = slices.DeleteFunc(c.up, func(other *instance) bool { return other == i })
	again := !i.killed && !c.closed
	if again {
		code, printed := i.proc.Exit()
		c.record(i, trace.Process{What: "exited", PID: i.proc.PID(), ExitCode: code, Output: printed})
		if c.exits++; c.exits >= mostExits {
			c.failure = &GoneError{Times: c.exits, Code: code, Said: output.LastLine(printed)}
			again = false
		}
	}
	if again {
		c.starting++ // from here on the world is not at rest
	}
	c.mu.Unlock()
	c.touched.wake()
	if !again {
		return
	}
	select {
	case <-time.After(exitPause):
	case <-c.ctx.Done():
	}
	c.mu.Lock()
	c.starting--
	c.mu.Unlock()
	_ = c.start(i.slot)
}

// fail ends the run with err.
func (c *controller) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = err
	c.touched.wake()
}

// kill ends all instances at once. It returns when they are gone. It may be called
// while a request of theirs is being answered.
func (c *controller) kill() {
	c.mu.Lock()
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

// killAndStart does both; the start goes on beside the caller, and until it is
// done the world is not at rest.
func (c *controller) killAndStart() {
	c.mu.Lock()
	c.starting++
	c.mu.Unlock()
	c.kill()
	c.work.Go(func() {
		_ = c.start(0)
		c.mu.Lock()
		c.starting--
		c.mu.Unlock()
		c.touched.wake()
	})
}

// close ends everything.
func (c *controller) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.kill()
	c.work.Wait()
}

// prepare has something done to the proxy of each instance before it starts; nil
// ends that.
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

// activity is what all instances do together.
type activity struct {
	instances   int
	unheard     int // of them have not asked for anything yet
	starting    bool
	electing    bool // one of them has asked for a Lease
	inFlight    int
	lastRequest time.Time
	askedAgain  time.Time
	writes      int64
	streams     int // of the instance that has the fewest
	// begun is when the last one was started, or when it first asked: how long an
	// interpreter takes to load is nothing that the world shows.
	begun time.Time
}

func (c *controller) activity() (activity, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := activity{instances: len(c.up), starting: c.starting > 0, begun: c.begun}
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

// proxies does something to the proxy of each instance.
func (c *controller) proxies(do func(*apiproxy.Proxy)) {
	for _, i := range c.instances() {
		do(i.proxy)
	}
}
