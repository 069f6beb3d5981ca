package forwarding

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func serviceOf(changes ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func podOf(name, ip string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{
			{Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP}, {Name: "main", ContainerPort: 9000},
		}}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func unready(p *corev1.Pod)   { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func ending(p *corev1.Pod)    { p.DeletionTimestamp = &metav1.Time{} }
func completed(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
func foreign(p *corev1.Pod)   { p.Labels = map[string]string{"app": "db"} }

func TestConnectionsGoToTheReadyPodsOfTheService(t *testing.T) {
	for _, test := range []struct {
		name    string
		service func(*corev1.Service)
		pods    []*corev1.Pod
		want    []string
	}{
		{"all that are ready, in order", nil, []*corev1.Pod{podOf("b", "127.9.0.3"), podOf("a", "127.9.0.2")}, []string{"127.9.0.2:8080", "127.9.0.3:8080"}},
		{"none is there", nil, nil, nil},
		{"one is not ready", nil, []*corev1.Pod{podOf("a", "127.9.0.2"), podOf("b", "127.9.0.3", unready)}, []string{"127.9.0.2:8080"}},
		{"one is not ready and this does not matter", func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }, []*corev1.Pod{podOf("b", "127.9.0.3", unready)}, []string{"127.9.0.3:8080"}},
		{"one ends", nil, []*corev1.Pod{podOf("a", "127.9.0.2", ending), podOf("b", "127.9.0.3")}, []string{"127.9.0.3:8080"}},
		{"all end", nil, []*corev1.Pod{podOf("a", "127.9.0.2", ending), podOf("b", "127.9.0.3", ending, unready)}, []string{"127.9.0.2:8080"}},
		{"one has no address yet", nil, []*corev1.Pod{podOf("a", "")}, nil},
		{"one has completed", nil, []*corev1.Pod{podOf("a", "127.9.0.2", completed)}, nil},
		{"one is of another service", nil, []*corev1.Pod{podOf("a", "127.9.0.2", foreign)}, nil},
		{"nothing is selected", func(s *corev1.Service) { s.Spec.Selector = nil }, []*corev1.Pod{podOf("a", "127.9.0.2")}, nil},
		{"the target is the port", func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.IntOrString{} }, []*corev1.Pod{podOf("a", "127.9.0.2")}, []string{"127.9.0.2:80"}},
		{"the target has a name", func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("main") }, []*corev1.Pod{
			podOf("a", "127.9.0.2"),
			podOf("b", "127.9.0.3", func(p *corev1.Pod) { p.Spec.Containers[0].Ports[1].ContainerPort = 9001 }),
			podOf("c", "127.9.0.4", func(p *corev1.Pod) { p.Spec.Containers[0].Ports = nil }),
		}, []string{"127.9.0.2:9000", "127.9.0.3:9001"}},
		{"the name is a sidecar's", func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("proxy") }, []*corev1.Pod{
			podOf("a", "127.9.0.2", func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{
					{Ports: []corev1.ContainerPort{{Name: "proxy", ContainerPort: 1}}},
					{RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Ports: []corev1.ContainerPort{{Name: "proxy", ContainerPort: 2}}},
				}
			}),
		}, []string{"127.9.0.2:2"}},
		{"the name is of a UDP port", func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("dns") }, []*corev1.Pod{podOf("a", "127.9.0.2")}, nil},
	} {
		service := serviceOf()
		if test.service != nil {
			test.service(service)
		}
		if diff := cmp.Diff(test.want, endpoints(service, service.Spec.Ports[0], test.pods)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestOnlyTCPPortsOfServicesWithPodsAreForwarded(t *testing.T) {
	both := serviceOf(func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "dns", Protocol: corev1.ProtocolUDP}, corev1.ServicePort{Name: "plain"})
	})
	if got := ports(both); len(got) != 2 || got[0].Name != "http" || got[1].Name != "plain" {
		t.Errorf("ports %v", got)
	}
	for name, change := range map[string]func(*corev1.Service){
		"no selector":   func(s *corev1.Service) { s.Spec.Selector = nil },
		"external name": func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName },
	} {
		if got := ports(serviceOf(change)); len(got) != 0 {
			t.Errorf("%s: ports %v", name, got)
		}
	}
}

func TestAddressSaysHTTPWhereTheServiceDoes(t *testing.T) {
	for _, test := range []struct {
		port corev1.ServicePort
		want string
	}{
		{corev1.ServicePort{Port: 80}, "http://"},
		{corev1.ServicePort{Port: 8080}, "http://"},
		{corev1.ServicePort{Port: 443}, "https://"},
		{corev1.ServicePort{Port: 5432}, ""},
		{corev1.ServicePort{Port: 5432, Name: "http"}, "http://"},
		{corev1.ServicePort{Port: 5432, Name: "http-api"}, "http://"},
		{corev1.ServicePort{Port: 5432, Name: "web"}, "http://"},
		{corev1.ServicePort{Port: 80, Name: "https-web"}, "https://"},
		{corev1.ServicePort{Port: 80, Name: "postgres"}, ""},
		{corev1.ServicePort{Port: 80, Name: "http", AppProtocol: new("redis")}, ""},
		{corev1.ServicePort{Port: 9, AppProtocol: new("HTTPS")}, "https://"},
	} {
		if got := scheme(test.port); got != test.want {
			t.Errorf("port %d %q: %q, want %q", test.port.Port, test.port.Name, got, test.want)
		}
	}
}
