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
	"github.com/koboshi-dev/koboshi/internal/check/rest"
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
	if n := ends(i); n != 1 {
		t.Errorf("the end is noted %d times", n)
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

// started strikes with a fault that restarts a sleeping controller at rest, and returns once the new
// instance is up.
func started(t *testing.T, kind fault.Kind) (*Injection, *instance.Set) {
	t.Helper()
	i := New(Config{Fault: fault.Fault{Kind: kind, Point: fault.Point{Step: "s"}}, Log: trace.NewLog(time.Now()), Steps: []string{"s"}})
	c := sleeping(t)
	i.Attach(c)
	i.Enter("s")
	if i.Applied() || !i.Due("s") || i.Decide(onPod("create")).Answer != nil || !reachable(t, c) {
		t.Fatal("the fault begins before the step is at rest")
	}
	before := c.Instances()[0]
	if done, err := i.Strike(t.Context()); !done || err != nil {
		t.Fatalf("done is %t, %v", done, err)
	}
	until(t, c, func(a instance.Activity) bool { return a.Instances == 1 && !a.Starting })
	if c.Instances()[0] == before || !i.HoldsUntilRest() {
		t.Error("the controller was not restarted")
	}
	return i, c
}

func TestControllerThatIsStartedOfflineReachesTheServerAfterAMoment(t *testing.T) {
	i, c := started(t, fault.OfflineStart)
	if reachable(t, c) {
		t.Error("the new instance can reach the server")
	}
	if left, _ := i.Away(); left <= 0 || left > fault.BriefOutageLasts {
		t.Errorf("the server is away for %s", left)
	}
	if due := i.RetryDue(); due <= 0 || due > 3*fault.BriefOutageLasts+rest.RetryMargin {
		t.Errorf("a retry is due within %s", due)
	}
	deadline := time.After(time.Minute)
	for left, _ := i.Away(); left > 0; left, _ = i.Away() {
		select {
		case <-time.After(left):
		case <-deadline:
			t.Fatal("the outage never ends")
		}
	}
	if !reachable(t, c) {
		t.Error("the new instance cannot reach the server after the outage")
	}
}

func TestControllerThatIsStartedWithoutEtcdGetsErrorsUntilRest(t *testing.T) {
	i, c := started(t, fault.FailingStart)
	if !reachable(t, c) {
		t.Error("the new instance cannot reach the server")
	}
	if !i.Decides() {
		t.Error("the fault is not asked about requests")
	}
	for _, call := range []*trace.Call{onPod("create"), onPod("get")} {
		if a := i.Decide(call); a.Answer == nil || a.Answer.Code != 500 {
			t.Errorf("the answer to %s is %+v", call.Verb, a.Answer)
		}
	}
	if a := i.Decide(&trace.Call{Verb: "get", Path: "/apis"}); a.Answer != nil {
		t.Errorf("discovery is answered with %+v", a.Answer)
	}
	if left, _ := i.Away(); left <= 0 || left > fault.BriefOutageLasts {
		t.Errorf("requests fail for %s", left)
	}
	if i.End(); i.Decide(onPod("create")).Answer != nil {
		t.Error("requests fail although healing has begun")
	}
	if left, since := i.Away(); left != 0 || since <= 0 || i.RetryDue() <= 0 || ends(i) != 1 {
		t.Errorf("after the end, requests fail for %s, and work since %s; a retry is due within %s; the end is noted %d times", left, since, i.RetryDue(), ends(i))
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
