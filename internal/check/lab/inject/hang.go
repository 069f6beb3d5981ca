package inject

import (
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// hang leaves a request without an answer until everything else is at rest, the client gives up, or
// the longest time is over. Then the connection breaks.
func hang(i *Injection, _ *trace.Call) apiproxy.Action {
	over := make(chan struct{})
	end := sync.OnceFunc(func() { close(over) })
	timer := time.AfterFunc(fault.HangLasts, end)
	i.keep(i.current(), func() {
		timer.Stop()
		end()
	})
	return apiproxy.Action{Hang: over}
}
