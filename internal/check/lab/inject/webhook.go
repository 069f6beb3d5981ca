package inject

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// closeWebhooks makes the controller's webhooks unreachable before a write is forwarded, until the step
// is at rest, or the longest time is over. The API server itself decides which writes it refuses. If it
// accepts this one, a selector or a condition of the webhook excludes the object, so the fault shows
// nothing.
func closeWebhooks(i *Injection, _ *trace.Call) apiproxy.Action {
	return apiproxy.Action{
		Before: func(context.Context) error {
			i.config.Webhooks.Close()
			closed := time.Now()
			reopen := sync.OnceFunc(func() { i.openWebhooks(closed) })
			timer := time.AfterFunc(fault.RefusalLasts, reopen)
			i.keep(i.current(), func() {
				timer.Stop()
				reopen()
			})
			return nil
		},
		Committed: func(call *trace.Call) {
			if call.Code < http.StatusBadRequest {
				i.refuse("the API server accepted the write without calling a webhook of the controller")
			}
		},
	}
}

// openWebhooks makes the webhooks reachable again. If that fails, the run shows nothing about the
// controller. Kubernetes' own controllers, such as the garbage collector, were refused as well, and now
// pause for at most as long as they have tried.
func (i *Injection) openWebhooks(closed time.Time) {
	if err := i.config.Webhooks.Open(); err != nil {
		i.refuse(err.Error())
	}
	i.config.Log.Record(trace.Entry{Fault: &trace.Fault{What: "ended", Text: "the webhooks can be reached again"}})
	i.mu.Lock()
	defer i.mu.Unlock()
	i.retry = time.Now().Add(time.Since(closed) + rest.RetryMargin)
}

// refusedRetryDue does the same as RetryDue for requests that were refused without the webhooks.
func (i *Injection) refusedRetryDue() time.Duration {
	if i == nil {
		return 0
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return max(time.Until(i.retry), 0)
}
