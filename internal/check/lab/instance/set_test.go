package instance

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// shellSet returns a controller that runs a shell script and needs no plane.
func shellSet(t *testing.T, script string) *Set {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	identity := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	c := New(t.Context(), Config{
		Log: trace.NewLog(time.Now()), Output: output.NewTail(1 << 10), Upstream: identity, Release: func() {},
		Spec: func(int, []byte) (process.Spec, error) {
			return process.Spec{Command: []string{"sh", "-c", script}, Env: os.Environ()}, nil
		},
	})
	t.Cleanup(c.Close)
	return c
}

// until waits until a condition of the controller holds.
func (c *Set) until(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		next := c.touched.Next()
		c.mu.Lock()
		ok := holds()
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-next:
		case <-deadline:
			t.Fatal("the condition never holds")
		}
	}
}

func TestRestartReplacesTheRestartAfterAnExit(t *testing.T) {
	c := shellSet(t, "mkdir "+t.TempDir()+"/once 2>/dev/null && exit 1; exec sleep 600")
	if err := c.Start(0); err != nil {
		t.Fatal(err)
	}
	c.until(t, func() bool { return c.exits == 1 }) // now it pauses before it is started again
	c.KillAndStart()
	c.until(t, func() bool { return c.starting == 0 })
	if up := c.Instances(); len(up) != 1 {
		t.Errorf("%d instances run in the same slot", len(up))
	}
}

func TestAControllerThatKeepsExitingIsNotRestartedAfterTheTimeForIt(t *testing.T) {
	c := shellSet(t, "exit 3")
	c.config.ExitsFor = time.Nanosecond
	if err := c.Start(0); err != nil {
		t.Fatal(err)
	}
	c.until(t, func() bool { return c.failure != nil })
	if c.exits != maxExits {
		t.Errorf("it was given up after %d exits", c.exits)
	}
}

func TestARetiredInstanceExitsByItselfAndOnlyTheOtherSlotGoesOn(t *testing.T) {
	asked := t.TempDir() + "/asked"
	c := shellSet(t, "trap 'mkdir "+asked+"; exit 0' TERM; while :; do sleep 0.05; done")
	for slot := range 2 {
		if err := c.Start(slot); err != nil {
			t.Fatal(err)
		}
	}
	c.Retire(0, time.Minute)
	if _, err := os.Stat(asked); err != nil {
		t.Errorf("the instance was not asked to exit: %v", err)
	}
	c.until(t, func() bool { return len(c.up) == 1 && c.starting == 0 })
	if up := c.Instances(); up[0].slot != 1 || c.exits != 0 {
		t.Errorf("slot %d is up after %d exits", up[0].slot, c.exits)
	}
	if err := c.Start(0); err != nil || len(c.Instances()) != 2 {
		t.Errorf("%d instances run after another start, %v", len(c.Instances()), err)
	}
}

func TestOnlyTheInstanceInTheSlotIsKilledAndStartedAgain(t *testing.T) {
	released := 0
	c := shellSet(t, "sleep 600")
	c.config.Release = func() { released++ }
	for slot := range 2 {
		if err := c.Start(slot); err != nil {
			t.Fatal(err)
		}
	}
	c.KillAndStartIn(1)
	c.until(t, func() bool { return c.starting == 0 && len(c.up) == 2 })
	if got := strings.Join(c.processes(), ", "); got != "controller-1 started, controller-2 started, controller-2 killed, controller-3 started" {
		t.Error(got)
	}
	if c.exits != 0 || released != 0 {
		t.Errorf("%d exits, and the Leases were released %d times although another instance is up", c.exits, released)
	}
	c.Retire(0, time.Minute)
	c.KillAndStartIn(1)
	c.until(t, func() bool { return c.starting == 0 && len(c.up) == 1 })
	if released != 1 {
		t.Errorf("the Leases were released %d times", released)
	}
}

func TestTheInstancesInASlotHaveADeciderOfTheirOwn(t *testing.T) {
	c := shellSet(t, "sleep 600")
	c.config.Decides = func(slot int) apiproxy.Decider {
		if slot == 0 {
			return nil
		}
		return deciderFunc(func(*trace.Call) apiproxy.Action { return apiproxy.Action{Drop: true} })
	}
	for slot := range 2 {
		if err := c.Start(slot); err != nil {
			t.Fatal(err)
		}
	}
	for slot, i := range c.Instances() {
		if got := i.Decide(&trace.Call{}).Drop; got != (slot == 1) {
			t.Errorf("slot %d: %t", slot, got)
		}
	}
}

// processes returns what became of the processes, in order.
func (c *Set) processes() (what []string) {
	for _, e := range c.config.Log.Entries() {
		if e.Process != nil {
			what = append(what, e.Instance+" "+e.Process.What)
		}
	}
	return what
}

func TestTerminatedInstanceEndsByItselfBeforeTheNextOneStarts(t *testing.T) {
	folder := t.TempDir()
	c := shellSet(t, "mkdir "+folder+"/first 2>/dev/null || exec sleep 600; trap 'mkdir "+folder+"/asked' TERM; mkdir "+folder+"/ready; until [ -e "+folder+"/go ]; do sleep 0.01; done; exit 7")
	if err := c.Start(0); err != nil {
		t.Fatal(err)
	}
	appears(t, folder+"/ready")
	c.TerminateAndStart(time.Minute)
	appears(t, folder+"/asked")
	if a, err := c.Activity(); err != nil || a.Instances != 1 || !a.Starting || a.Ending <= 0 {
		t.Errorf("while it is shutting down: %+v, %v", a, err)
	}
	if err := os.Mkdir(folder+"/go", 0o700); err != nil {
		t.Fatal(err)
	}
	c.until(t, func() bool { return c.starting == 0 })
	want := []string{"controller-1 started", "controller-1 terminated", "controller-1 ended", "controller-2 started"}
	if got := c.processes(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if a, _ := c.Activity(); a.Instances != 1 || a.Exits != 0 || a.Ending != 0 {
		t.Errorf("after the restart: %+v", a)
	}
}

// appears waits until a file exists.
func appears(t *testing.T, name string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		if _, err := os.Stat(name); err == nil {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			t.Fatalf("%s does not appear", name)
		}
	}
}

func TestTerminatedInstanceIsKilledAfterItsGracePeriod(t *testing.T) {
	ready := t.TempDir() + "/ready"
	c := shellSet(t, "trap '' TERM; mkdir -p "+ready+"; while :; do sleep 0.01; done")
	if err := c.Start(0); err != nil {
		t.Fatal(err)
	}
	appears(t, ready)
	c.TerminateAndStart(50 * time.Millisecond)
	c.until(t, func() bool { return c.starting == 0 })
	want := []string{"controller-1 started", "controller-1 terminated", "controller-1 killed", "controller-2 started"}
	if got := c.processes(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestKillWhileAnInstanceIsShuttingDownDecidesAboutTheNextStart(t *testing.T) {
	ready := t.TempDir() + "/ready"
	c := shellSet(t, "trap '' TERM; mkdir -p "+ready+"; while :; do sleep 0.01; done")
	if err := c.Start(0); err != nil {
		t.Fatal(err)
	}
	appears(t, ready)
	c.TerminateAndStart(time.Minute)
	c.KillAndStart()
	c.until(t, func() bool { return c.starting == 0 })
	if up := c.Instances(); len(up) != 1 {
		t.Errorf("%d instances run in the same slot", len(up))
	}
}

func TestInstanceThatIsBeingStartedIsRetiredAsWell(t *testing.T) {
	c := shellSet(t, "exec sleep 600")
	c.Prepare(func(*apiproxy.Proxy) { c.Retire(0, time.Minute) })
	if err := c.Start(0); err != nil {
		t.Fatal(err)
	}
	c.until(t, func() bool { return len(c.up) == 0 })
}

func TestInstanceThatIsBeingStartedIsKilledAsWell(t *testing.T) {
	c := shellSet(t, "exec sleep 600")
	c.Prepare(func(*apiproxy.Proxy) { c.Kill() })
	if err := c.Start(0); err != nil {
		t.Fatal(err)
	}
	c.until(t, func() bool { return len(c.up) == 0 })
	if c.exits != 0 {
		t.Errorf("it was started again %d times", c.exits)
	}
}

func TestOverrideDecidesFirstAboutOneInstance(t *testing.T) {
	drops := deciderFunc(func(*trace.Call) apiproxy.Action { return apiproxy.Action{Drop: true} })
	one, other := &Instance{next: drops}, &Instance{next: drops}
	one.Override(func(call *trace.Call) (apiproxy.Action, bool) {
		return apiproxy.Action{Swallow: true}, call.Verb == "update"
	})
	update, get := &trace.Call{Verb: "update"}, &trace.Call{Verb: "get"}
	if a, b, c := one.Decide(update), one.Decide(get), other.Decide(update); !a.Swallow || b.Swallow || !b.Drop || c.Swallow || !c.Drop {
		t.Errorf("%+v, %+v, %+v", a, b, c)
	}
	one.Override(nil)
	if a := one.Decide(update); a.Swallow || !a.Drop {
		t.Errorf("without the override: %+v", a)
	}
	if a := (&Instance{}).Decide(update); a.Drop {
		t.Errorf("without any decider: %+v", a)
	}
}

type deciderFunc func(*trace.Call) apiproxy.Action

func (d deciderFunc) Decide(call *trace.Call) apiproxy.Action { return d(call) }
