package forwarding

import "testing"

func TestAddressesAreKnownByPortWhileTheyAreForwarded(t *testing.T) {
	c := newCluster(t)
	addresses := &Addresses{}
	c.forwarding.Addresses = addresses
	service := serviceOf()
	number := service.Spec.Ports[0].Port
	pod := on(t, service, program(t, "a"))

	c.become(t, service)
	if got, ok := addresses.Of("default", "web", number); ok {
		t.Errorf("before a Pod is Ready: %s", got)
	}
	c.become(t, service, pod)
	if got, ok := addresses.Of("default", "web", number); !ok || got != c.address(t) {
		t.Errorf("%q, %v; want %s", got, ok, c.address(t))
	}
	if got, ok := addresses.Of("default", "web", number+1); ok {
		t.Errorf("another port: %s", got)
	}
	c.become(t, nil)
	if got, ok := addresses.Of("default", "web", number); ok {
		t.Errorf("after the Service was deleted: %s", got)
	}
}
