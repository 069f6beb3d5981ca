package inject

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// cutOff begins an outage for a controller that only sleeps.
func cutOff(t *testing.T) (*Injection, *instance.Set) {
	t.Helper()
	i := New(Config{Fault: fault.Fault{Kind: fault.Outage, Point: fault.Point{Step: "s"}}, Log: trace.NewLog(time.Now()), Steps: []string{"s"}})
	c := sleeping(t)
	i.Attach(c)
	i.Enter("s")
	return i, c
}

// reachable reports whether the proxies of all instances accept connections.
func reachable(t *testing.T, c *instance.Set) bool {
	t.Helper()
	all := true
	c.Proxies(func(p *apiproxy.Proxy) {
		kubeconfig, err := p.Kubeconfig()
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", config.Host[len("https://"):], &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			all = false
			return
		}
		_ = conn.Close()
	})
	return all
}

func TestOutageEndsBeforeHealingBegins(t *testing.T) {
	i, c := cutOff(t)
	if !i.Applied() || !i.HoldsUntilRest() || reachable(t, c) {
		t.Error("the outage has not begun")
	}
	if left, since := i.Away(); left <= 0 || left > fault.OutageLasts || since != 0 {
		t.Errorf("the server is away for %s, and back since %s", left, since)
	}
	if due := i.RetryDue(); due <= 2*fault.OutageLasts {
		t.Errorf("a retry is due within %s, but the outage has only begun", due)
	}
	i.End()
	if left, since := i.Away(); left != 0 || since <= 0 || !reachable(t, c) {
		t.Errorf("after the end, the server is away for %s, and back since %s", left, since)
	}
	if _, err := c.Activity(); err != nil {
		t.Error(err)
	}
	notes := 0
	for _, e := range i.config.Log.Entries() {
		if e.Fault != nil && e.Fault.What == "ended" {
			notes++
		}
	}
	if notes != 1 {
		t.Errorf("the end is noted %d times", notes)
	}
}

func TestInstanceThatIsStartedDuringAnOutageIsCutOffAsWell(t *testing.T) {
	i, c := cutOff(t)
	c.KillAndStart()
	until(t, c, func(a instance.Activity) bool { return a.Instances == 1 && !a.Starting })
	if reachable(t, c) {
		t.Error("the new instance can reach the server")
	}
	i.End()
	if !reachable(t, c) {
		t.Error("the new instance cannot reach the server after the outage")
	}
	c.KillAndStart()
	until(t, c, func(a instance.Activity) bool { return a.Instances == 1 && !a.Starting })
	if !reachable(t, c) {
		t.Error("an instance that was started after the outage is cut off")
	}
}

func TestWithoutAnOutageNoRetryIsDue(t *testing.T) {
	var none *Injection
	for _, i := range []*Injection{none, New(Config{})} {
		if left, since := i.Away(); left != 0 || since != 0 || i.RetryDue() != 0 {
			t.Errorf("%s, %s, %s", left, since, i.RetryDue())
		}
	}
}
