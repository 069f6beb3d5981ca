package inject

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
)

func TestARequestHangsUntilEverythingElseIsAtRest(t *testing.T) {
	i := refusing(fault.Hang, "update")
	a := i.Decide(write("update", "d", "a"))
	if a.Hang == nil || a.Answer != nil || a.Swallow {
		t.Fatalf("the action is %+v", a)
	}
	if b := i.Decide(write("update", "d", "a")); b.Hang != nil {
		t.Error("the second attempt hangs as well")
	}
	select {
	case <-a.Hang:
		t.Error("the request is over before anything is at rest")
	default:
	}
	if !i.HoldsUntilRest() {
		t.Error("the fault does not wait for rest")
	}
	i.Release("s")
	<-a.Hang
}
