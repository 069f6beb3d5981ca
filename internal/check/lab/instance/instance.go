package instance

import (
	"sync/atomic"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Instance is one process with its own proxy to the cluster. The zero value does not affect any
// request.
type Instance struct {
	name   string
	slot   int
	proxy  *apiproxy.Proxy
	proc   *process.Process
	next   apiproxy.Decider
	first  atomic.Pointer[Override]
	killed bool
}

var _ apiproxy.Decider = (*Instance)(nil)

// An Override decides about requests of one instance only. An Override reports false for a request
// that it leaves to the decider of all instances.
type Override func(*trace.Call) (apiproxy.Action, bool)

// Override sets the override that decides about each request first; nil removes it.
func (i *Instance) Override(o Override) {
	if o == nil {
		i.first.Store(nil)
		return
	}
	i.first.Store(&o)
}

// Decide decides about a request of the instance.
func (i *Instance) Decide(call *trace.Call) apiproxy.Action {
	if o := i.first.Load(); o != nil {
		if a, ok := (*o)(call); ok {
			return a
		}
	}
	if i.next == nil {
		return apiproxy.Action{}
	}
	return i.next.Decide(call)
}
