package lab

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// shellController returns a controller that runs a shell script and needs no plane.
func shellController(t *testing.T, script string) *controller {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	identity := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	c := &controller{
		ctx: t.Context(), log: trace.NewLog(time.Now()), output: output.NewTail(logTail), upstream: identity, release: func() {},
		spec: func(int, []byte) (process.Spec, error) {
			return process.Spec{Command: []string{"sh", "-c", script}, Env: os.Environ()}, nil
		},
	}
	t.Cleanup(c.close)
	return c
}

// until waits until a condition of the controller holds.
func (c *controller) until(t *testing.T, holds func() bool) {
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
	c := shellController(t, "mkdir "+t.TempDir()+"/once 2>/dev/null && exit 1; exec sleep 600")
	if err := c.start(0); err != nil {
		t.Fatal(err)
	}
	c.until(t, func() bool { return c.exits == 1 }) // now it pauses before it is started again
	c.killAndStart()
	c.until(t, func() bool { return c.starting == 0 })
	if up := c.instances(); len(up) != 1 {
		t.Errorf("%d instances run in the same slot", len(up))
	}
}

func TestInstanceThatIsBeingStartedIsKilledAsWell(t *testing.T) {
	c := shellController(t, "exec sleep 600")
	c.prepare(func(*apiproxy.Proxy) { c.kill() })
	if err := c.start(0); err != nil {
		t.Fatal(err)
	}
	c.until(t, func() bool { return len(c.up) == 0 })
	if c.exits != 0 {
		t.Errorf("it was started again %d times", c.exits)
	}
}
