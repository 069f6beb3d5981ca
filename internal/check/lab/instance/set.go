// Package instance runs the instances of a controller: processes, each behind a proxy of its own.
// It starts, kills and restarts them, and reports what they are doing. It does not depend on
// scenarios or faults.
//
//	Config.Spec ──▶ process ──▶ proxy ──▶ the API server
//	   Start, Kill, Restart │        │ Decider
//	                        ▼        ▼
//	                     Gone     Activity
package instance

import (
	"cmp"
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

const (
	// The restarts of a controller end after maxExits exits, but not before Config.ExitsFor has
	// passed since the first exit, because a controller may exit again and again until something
	// that it needs exists. The pause before a restart doubles from exitPause to maxExitPause, as a
	// kubelet's does.
	maxExits     = 6
	exitsFor     = 20 * time.Second
	exitPause    = 50 * time.Millisecond
	maxExitPause = 2 * time.Second
)

// Config describes the instances of one run.
type Config struct {
	Log     *trace.Log
	Decider apiproxy.Decider // for the requests of all instances; nil for none
	Output  *output.Tail     // receives what all instances print
	// Upstream holds the address of the API server and the controller's identity.
	Upstream *rest.Config
	// Spec prepares the process of the instance in a slot, which finds the cluster with the
	// kubeconfig.
	Spec func(slot int, kubeconfig []byte) (process.Spec, error)
	// Name returns the first part of the names of the instances in a slot, and Identity returns what
	// replaces Upstream there. Both may be nil: then each name begins with "controller", and all
	// instances use Upstream.
	Name     func(slot int) string
	Identity func(slot int) *rest.Config
	// Decides returns what replaces Decider for the instances in a slot. It may be nil.
	Decides func(slot int) apiproxy.Decider
	// Release is called before an instance starts if no other instance is left.
	Release func()
	// Hint names a limit of this system that may explain an exit.
	Hint string
	// ExitsFor is the time for which a controller that keeps exiting is restarted at least; 0 means
	// 20 s.
	ExitsFor time.Duration
}

// Set manages the instances of a controller, usually one at a time. Like a kubelet, it
// restarts an instance that exits on its own. Its methods are safe for concurrent use.
//
//	Start ──▶ up ──Kill──▶ gone
//	           │
//	           └─exits──▶ pause ──▶ start (until Gone)
type Set struct {
	config  Config
	ctx     context.Context
	touched broadcast.Signal
	work    sync.WaitGroup
	turn    sync.Mutex // held by the one restart in progress

	mu       sync.Mutex
	up       []*Instance
	started  int
	starting int
	kills    int // a start or restart that began before the last kill is no longer wanted
	exits    int
	exited   time.Time  // when an instance first exited on its own
	last     *GoneError // describes the last exit
	failure  error
	closed   bool
	begun    time.Time    // when an instance was last started
	ending   time.Time    // until when the terminated instances may take to exit; zero if there are none
	retired  map[int]bool // slots in which no instance is restarted
	ready    func(*apiproxy.Proxy)
}

// New returns a set without instances. When the context ends, all instances are killed.
func New(ctx context.Context, c Config) *Set { return &Set{ctx: ctx, config: c} }

// Context returns the context with which all instances end.
func (c *Set) Context() context.Context { return c.ctx }

// Touched returns a channel that is closed at the next event of an instance.
func (c *Set) Touched() <-chan struct{} { return c.touched.Next() }

// Start starts an instance and returns once it is running.
func (c *Set) Start(slot int) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.started++
	c.starting++
	kills := c.kills
	name := fmt.Sprintf("%s-%d", c.name(slot), c.started)
	c.begun = time.Now()
	delete(c.retired, slot)
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
// killed, or those in its slot retired, while it was being started.
func (c *Set) entered(i *Instance, kills int) (killed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i.killed = c.kills != kills || c.retired[i.slot]
	c.up = append(c.up, i)
	c.work.Go(func() { c.follow(i) })
	return i.killed
}

// Restart starts an instance after all other instances have ended. It first releases the Leases of
// the previous instances.
func (c *Set) Restart(slot int) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.config.Release()
	return c.Start(slot)
}

func (c *Set) name(slot int) string {
	if c.config.Name == nil {
		return "controller"
	}
	return c.config.Name(slot)
}

func (c *Set) upstream(slot int) *rest.Config {
	if c.config.Identity == nil {
		return c.config.Upstream
	}
	return c.config.Identity(slot)
}

func (c *Set) decider(slot int) apiproxy.Decider {
	if c.config.Decides == nil {
		return c.config.Decider
	}
	return c.config.Decides(slot)
}

func (c *Set) launch(name string, slot int) (*Instance, error) {
	i := &Instance{name: name, slot: slot, next: c.decider(slot)}
	var err error
	i.proxy, err = apiproxy.Start(c.ctx, apiproxy.Config{Upstream: c.upstream(slot), Instance: name, Log: c.config.Log, Decider: i})
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
func (c *Set) exec(slot int, kubeconfig []byte) (*process.Process, error) {
	spec, err := c.config.Spec(slot, kubeconfig)
	if err != nil {
		return nil, err
	}
	spec.Output = c.config.Output
	return process.Start(c.ctx, spec)
}

func (c *Set) record(i *Instance, p trace.Process) {
	c.config.Log.Record(trace.Entry{Instance: i.name, Process: &p})
}

// follow signals the activity of an instance, and restarts the instance if it exits on its
// own.
func (c *Set) follow(i *Instance) {
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
	c.up = slices.DeleteFunc(c.up, func(other *Instance) bool { return other == i })
	kills := c.kills
	again := !i.killed && !c.closed
	if again {
		code, printed := i.proc.Exit()
		printed = scrub.Known.Text(printed)
		c.record(i, trace.Process{What: "exited", PID: i.proc.PID(), ExitCode: code, Output: printed})
		if c.exits++; c.exits == 1 {
			c.exited = time.Now()
		}
		c.last = &GoneError{Times: c.exits, Code: code, Said: output.Reason(printed), Printed: printed, Hint: c.config.Hint}
		if c.exits >= maxExits && time.Since(c.exited) >= cmp.Or(c.config.ExitsFor, exitsFor) {
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

// again restarts an instance that exited on its own, unless all instances have been killed in the
// meantime: then the code that killed them decides about the next start. kills is the number of
// kills at the time of the exit.
func (c *Set) again(slot, kills int) {
	c.turn.Lock()
	defer c.turn.Unlock()
	defer c.touched.Fire()
	c.mu.Lock()
	alone := len(c.up) == 0 && c.starting == 1 // only this restart
	wanted := c.kills == kills
	c.mu.Unlock()
	if wanted && alone {
		c.config.Release()
	}
	c.mu.Lock()
	c.starting--
	wanted = c.kills == kills && !c.retired[slot]
	c.mu.Unlock()
	if wanted {
		_ = c.Start(slot)
	}
}

// pauseAfter returns the pause before a restart after the given number of exits.
func pauseAfter(exits int) time.Duration {
	return min(exitPause<<min(max(exits-1, 0), 16), maxExitPause)
}

// Gone returns a GoneError if the controller keeps exiting, even if it may still be restarted, and
// nil otherwise.
func (c *Set) Gone() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exits < maxExits {
		return nil
	}
	return c.last
}

// Fail ends the run with err.
func (c *Set) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = err
	c.touched.Fire()
}

// Kill kills all instances immediately and returns when they are gone. Kill may be called while a
// request of an instance is being answered.
func (c *Set) Kill() {
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

// Retire asks the instances in a slot to exit, as a kubelet does, and kills those that have not exited
// after the grace period. It returns when they are gone. They are not restarted, until Start is called
// for the slot.
func (c *Set) Retire(slot int, grace time.Duration) {
	c.mu.Lock()
	if c.retired == nil {
		c.retired = map[int]bool{}
	}
	c.retired[slot] = true
	var old []*Instance
	for _, i := range c.up {
		if i.slot == slot {
			i.killed = true
			old = append(old, i)
		}
	}
	c.mu.Unlock()
	for _, i := range old {
		i.proc.Stop(grace)
		c.record(i, trace.Process{What: "killed", PID: i.proc.PID()})
	}
}

// KillAndStart kills all instances and starts a new one in the background. Until the new instance
// has started, the world is not considered to be at rest.
func (c *Set) KillAndStart() {
	c.mu.Lock()
	c.starting++
	c.mu.Unlock()
	c.Kill()
	c.work.Go(func() {
		_ = c.Restart(0)
		c.mu.Lock()
		c.starting--
		c.mu.Unlock()
		c.touched.Fire()
	})
}

// KillAndStartIn is like KillAndStart, but only for the instances in a slot. The others keep running.
func (c *Set) KillAndStartIn(slot int) {
	c.mu.Lock()
	c.starting++
	var victims []*Instance
	alone := true
	for _, i := range c.up {
		if i.slot == slot {
			i.killed = true
			victims = append(victims, i)
		}
		alone = alone && i.killed
	}
	c.mu.Unlock()
	for _, i := range victims {
		i.proc.Kill()
		c.record(i, trace.Process{What: "killed", PID: i.proc.PID()})
	}
	c.work.Go(func() {
		c.turn.Lock()
		if alone {
			c.config.Release()
		}
		_ = c.Start(slot)
		c.turn.Unlock()
		c.mu.Lock()
		c.starting--
		c.mu.Unlock()
		c.touched.Fire()
	})
}

// TerminateAndStart asks all instances to exit, as a kubelet does, and returns. In the background, it
// kills those that have not exited after the grace period, and then starts a new one, unless the
// instances have been killed in the meantime: then the code that killed them decides about the next
// start. Until the new instance has started, the world is not considered to be at rest.
func (c *Set) TerminateAndStart(grace time.Duration) {
	c.mu.Lock()
	c.starting++
	c.kills++
	kills := c.kills
	old := slices.Clone(c.up)
	for _, i := range old {
		i.killed = true
	}
	c.ending = time.Now().Add(grace)
	c.mu.Unlock()
	for _, i := range old {
		c.record(i, trace.Process{What: "terminated", PID: i.proc.PID()})
		i.proc.Terminate()
	}
	c.work.Go(func() {
		for _, i := range old {
			c.awaitEnd(i)
		}
		c.mu.Lock()
		c.ending = time.Time{}
		wanted := c.kills == kills
		c.mu.Unlock()
		if wanted {
			_ = c.Restart(0)
		}
		c.mu.Lock()
		c.starting--
		c.mu.Unlock()
		c.touched.Fire()
	})
}

// awaitEnd waits for the end of an instance that was asked to exit, and records how it ended.
func (c *Set) awaitEnd(i *Instance) {
	c.mu.Lock()
	left := time.Until(c.ending)
	c.mu.Unlock()
	if i.proc.Await(left) {
		c.record(i, trace.Process{What: "killed", PID: i.proc.PID()})
		return
	}
	code, printed := i.proc.Exit()
	c.record(i, trace.Process{What: "ended", PID: i.proc.PID(), ExitCode: code, Output: scrub.Known.Text(printed)})
}

// Close kills all instances and waits for all background work.
func (c *Set) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.Kill()
	c.work.Wait()
}

// Prepare registers a function that is called with the proxy of each instance before
// the instance starts; nil removes the function.
func (c *Set) Prepare(do func(*apiproxy.Proxy)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = do
}

// Instances returns the instances that are up.
func (c *Set) Instances() []*Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.up)
}

// Proxies calls do with the proxy of each instance.
func (c *Set) Proxies(do func(*apiproxy.Proxy)) {
	for _, i := range c.Instances() {
		do(i.proxy)
	}
}
