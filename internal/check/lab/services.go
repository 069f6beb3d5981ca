package lab

import (
	"net/netip"
	"slices"
)

// webhookAddress returns the address at which the API server calls the webhooks of a Service: that of the
// instance to which route leads, or of the gate before it. So the objects of the installation keep the
// Services that they name, and a controller that completes them, or creates others, works as in a cluster.
func (l *Lab) webhookAddress(namespace, name string, _ int32) (address string, ok bool) {
	if l.subject(int(l.server.Load())).Webhook.Port == 0 || !l.namesService(namespace, name) {
		return "", false
	}
	if g := l.gate.Load(); g != nil {
		return g.Address(), true
	}
	return l.serverAddress(), true
}

// serverAddress returns the address at which the instance to which route leads serves webhooks.
func (l *Lab) serverAddress() string {
	slot := int(l.server.Load())
	return netip.AddrPortFrom(l.address(slot), uint16(l.subject(slot).Webhook.Port)).String()
}

// route makes the API server call all webhooks at the instance in a slot from now on.
func (l *Lab) route(slot int) { l.server.Store(int32(slot)) }

func (l *Lab) namesService(namespace, name string) bool {
	for slot := range slots {
		for _, service := range l.subject(slot).Services() {
			if service.Namespace == namespace && service.Name == name {
				return true
			}
		}
	}
	return false
}

// serverNames returns the host names at which webhooks are called.
func (l *Lab) serverNames() []string {
	names := []string{"localhost"}
	for slot := range slots {
		for _, service := range l.subject(slot).Services() {
			names = append(names, service.Name+"."+service.Namespace+".svc")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
