package forwarding

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// Addresses are the addresses of all forwarded ports. The API server needs them to call webhooks and
// aggregated APIs in Pods that are processes.
type Addresses struct {
	mu sync.Mutex
	of map[cache.ObjectName]map[int32]string
}

// Of returns the address of a Service's port, as host:port. It reports false if the port is not forwarded.
func (a *Addresses) Of(namespace, service string, port int32) (address string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	address, ok = a.of[cache.ObjectName{Namespace: namespace, Name: service}][port]
	return address, ok
}

// set replaces the addresses of a Service.
func (a *Addresses) set(service cache.ObjectName, addresses map[int32]string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[cache.ObjectName]map[int32]string{}
	}
	if len(addresses) == 0 {
		delete(a.of, service)
		return
	}
	a.of[service] = addresses
}
