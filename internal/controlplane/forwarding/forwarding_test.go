package forwarding

import (
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// cluster simulates the objects that informers read, and records the results.
type cluster struct {
	services, pods cache.Indexer
	forwarding     *forwarding
	reachable      []Address
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	c := &cluster{
		services: cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace),
		pods:     cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace),
	}
	c.forwarding = newForwarding(t.Context(), Config{
		Log:       slog.New(slog.DiscardHandler),
		Reachable: func(a Address) { c.reachable = append(c.reachable, a) },
	}, corelisters.NewServiceLister(c.services), corelisters.NewPodLister(c.pods))
	t.Cleanup(c.forwarding.stop)
	return c
}

// become replaces all objects and syncs the Service web.
func (c *cluster) become(t *testing.T, service *corev1.Service, pods ...*corev1.Pod) {
	t.Helper()
	var objects []any
	for _, pod := range pods {
		objects = append(objects, pod)
	}
	if err := c.pods.Replace(objects, ""); err != nil {
		t.Fatal(err)
	}
	objects = nil
	if service != nil {
		objects = append(objects, service)
	}
	if err := c.services.Replace(objects, ""); err != nil {
		t.Fatal(err)
	}
	if err := c.forwarding.sync(cache.ObjectName{Namespace: "default", Name: "web"}); err != nil {
		t.Fatal(err)
	}
}

// address returns the last reported address.
func (c *cluster) address(t *testing.T) string {
	t.Helper()
	if len(c.reachable) == 0 {
		t.Fatal("no address was reported")
	}
	last := c.reachable[len(c.reachable)-1]
	address, found := strings.CutPrefix(last.URL, "http://")
	if !found {
		t.Fatalf("address %q", last.URL)
	}
	return address
}

// on returns a Pod for the program at address, and sets the Service's target
// port to the port of the program.
func on(t *testing.T, service *corev1.Service, address string) *corev1.Pod {
	t.Helper()
	ip, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	service.Spec.Ports[0].TargetPort = intstr.FromInt(number)
	return podOf("a", ip)
}

func TestServiceIsReachableFromTheFirstReadyPodOn(t *testing.T) {
	c := newCluster(t)
	service := serviceOf()
	pod := on(t, service, program(t, "a"))
	waiting := pod.DeepCopy()
	unready(waiting)

	c.become(t, service, waiting)
	if len(c.reachable) != 0 {
		t.Fatalf("reported %v before a Pod is Ready", c.reachable)
	}
	c.become(t, service, pod)
	address := c.address(t)
	want := []Address{{Namespace: "default", Service: "web", URL: "http://" + address}}
	if diff := cmp.Diff(want, c.reachable); diff != "" {
		t.Error(diff)
	}
	if got := line(t, connect(t, address)); got != "a" {
		t.Errorf("connected to %q", got)
	}
}

func TestAddressIsKeptWhilePodsComeAndGo(t *testing.T) {
	c := newCluster(t)
	service := serviceOf()
	pod := on(t, service, program(t, "a"))
	c.become(t, service, pod)
	address := c.address(t)

	c.become(t, service)
	refused(t, address)

	other := serviceOf()
	c.become(t, other, on(t, other, program(t, "b")))
	if got := line(t, connect(t, address)); got != "b" {
		t.Errorf("connected to %q", got)
	}
	if len(c.reachable) != 1 {
		t.Errorf("told %v", c.reachable)
	}
}

func TestSelectorIsFollowedAtOnce(t *testing.T) {
	c := newCluster(t)
	service := serviceOf()
	pod := on(t, service, program(t, "a"))
	c.become(t, service, pod)
	changed := service.DeepCopy()
	changed.Spec.Selector = map[string]string{"app": "db"}
	c.become(t, changed, pod)
	refused(t, c.address(t))
}

func TestDeletedServiceGivesUpItsAddress(t *testing.T) {
	c := newCluster(t)
	service := serviceOf()
	pod := on(t, service, program(t, "a"))
	c.become(t, service, pod)
	c.become(t, nil, pod)
	if _, err := net.DialTimeout("tcp4", c.address(t), within); err == nil {
		t.Error("the address still answers")
	}
	if len(c.forwarding.open) != 0 {
		t.Errorf("services %v", c.forwarding.open)
	}
}

func TestServiceOfTheSameNameIsAnother(t *testing.T) {
	c := newCluster(t)
	service := serviceOf()
	pod := on(t, service, program(t, "a"))
	c.become(t, service, pod)
	again := service.DeepCopy()
	again.UID = "2"
	c.become(t, again, pod)
	if len(c.reachable) != 2 {
		t.Errorf("reported %v, want one address for each Service", c.reachable)
	}
	if got := line(t, connect(t, c.address(t))); got != "a" {
		t.Errorf("connected to %q", got)
	}
}

func TestAddressesOfSeveralPortsAreTold(t *testing.T) {
	c := newCluster(t)
	service := serviceOf()
	pod := on(t, service, program(t, "a"))
	second := service.Spec.Ports[0]
	second.Name = "metrics"
	service.Spec.Ports = append(service.Spec.Ports, second)
	c.become(t, service, pod)
	if len(c.reachable) != 2 || c.reachable[0].Port != "http" || c.reachable[1].Port != "metrics" || c.reachable[0].URL == c.reachable[1].URL {
		t.Errorf("told %v", c.reachable)
	}
}

func TestRemovedPortGivesUpItsAddress(t *testing.T) {
	c := newCluster(t)
	service := serviceOf()
	pod := on(t, service, program(t, "a"))
	c.become(t, service, pod)
	address := c.address(t)
	renamed := service.DeepCopy()
	renamed.Spec.Ports[0].Name = "web"
	c.become(t, renamed, pod)
	if c.address(t) != address { // the new port may have got the same address
		if _, err := net.DialTimeout("tcp4", address, within); err == nil {
			t.Error("the address of the removed port still answers")
		}
	}
	if got := line(t, connect(t, c.address(t))); got != "a" {
		t.Errorf("connected to %q", got)
	}
}

func TestNodePortIsTheAddress(t *testing.T) {
	c := newCluster(t)
	free, err := net.ResolveTCPAddr("tcp4", vacant(t))
	if err != nil {
		t.Fatal(err)
	}
	service := serviceOf(func(s *corev1.Service) { s.Spec.Ports[0].NodePort = int32(free.Port) })
	c.become(t, service, on(t, service, program(t, "a")))
	if got := c.address(t); got != free.String() {
		t.Errorf("address %s, want %s", got, free)
	}
}

func TestChangedPodQueuesTheServicesThatSelectIt(t *testing.T) {
	c := newCluster(t)
	for _, service := range []*corev1.Service{
		serviceOf(),
		serviceOf(func(s *corev1.Service) { s.Name = "db"; s.Spec.Selector["app"] = "db" }),
		serviceOf(func(s *corev1.Service) { s.Namespace = "other" }),
		serviceOf(func(s *corev1.Service) { s.Name = "manual"; s.Spec.Selector = nil }),
	} {
		if err := c.services.Add(service); err != nil {
			t.Fatal(err)
		}
	}
	c.forwarding.enqueueSelecting(podOf("a", ""))
	c.forwarding.enqueueSelecting(cache.DeletedFinalStateUnknown{Obj: podOf("a", "")})
	if n := c.forwarding.queue.Len(); n != 1 {
		t.Fatalf("%d services are queued, want 1", n)
	}
	if key, _ := c.forwarding.queue.Get(); key.String() != "default/web" {
		t.Errorf("%s is queued", key)
	}
}

func TestAddressIsALineForPeople(t *testing.T) {
	for want, address := range map[string]Address{
		"service default/web  http://127.0.0.1:41237":  {Namespace: "default", Service: "web", URL: "http://127.0.0.1:41237"},
		"service default/db:postgres  127.0.0.1:41237": {Namespace: "default", Service: "db", Port: "postgres", URL: "127.0.0.1:41237"},
	} {
		if got := address.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
