package forwarding

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ports returns the ports of a Service that can be forwarded.
func ports(service *corev1.Service) []corev1.ServicePort {
	if len(service.Spec.Selector) == 0 || service.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(service.Spec.Ports), func(p corev1.ServicePort) bool {
		return cmp.Or(p.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP
	})
}

// selects reports whether a Service selects the Pod.
func selects(service *corev1.Service, pod *corev1.Pod) bool {
	return len(service.Spec.Selector) > 0 && labels.SelectorFromValidatedSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))
}

// endpoints returns, in order, the addresses to which connections to a Service's port are
// forwarded. These are addresses of the Ready Pods that the Service selects or, if there are none,
// of the terminating Pods that are still Ready, as in kube-proxy.
func endpoints(service *corev1.Service, port corev1.ServicePort, pods []*corev1.Pod) []string {
	var ready, ending []string
	for _, pod := range pods {
		target := targetPort(port, pod)
		if !selects(service, pod) || target == 0 || pod.Status.PodIP == "" || finished(pod) {
			continue
		}
		address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(target))
		switch serving := service.Spec.PublishNotReadyAddresses || isReady(pod); {
		case serving && pod.DeletionTimestamp == nil:
			ready = append(ready, address)
		case serving:
			ending = append(ending, address)
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	slices.Sort(ready)
	return ready
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// targetPort returns the number of the port in a Pod, or 0 if the Pod has no
// port of that name.
func targetPort(port corev1.ServicePort, pod *corev1.Pod) int {
	if port.TargetPort.Type == intstr.Int {
		return int(cmp.Or(port.TargetPort.IntVal, port.Port))
	}
	containers := slices.Clone(pod.Spec.Containers)
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c) // this is a sidecar, which may have ports
		}
	}
	for _, c := range containers {
		for _, p := range c.Ports {
			if p.Name == port.TargetPort.StrVal && cmp.Or(p.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP {
				return int(p.ContainerPort)
			}
		}
	}
	return 0
}

// scheme returns the URL prefix for the address of a port, or "" if nothing in the Service
// indicates that the port speaks HTTP.
func scheme(port corev1.ServicePort) string {
	says := port.Name
	if port.AppProtocol != nil {
		says = *port.AppProtocol
	}
	says, _, _ = strings.Cut(strings.ToLower(says), "-")
	switch {
	case says == "https", says == "" && port.Port == 443:
		return "https://"
	case says == "http", says == "web", says == "" && slices.Contains([]int32{80, 8000, 8080}, port.Port):
		return "http://"
	}
	return ""
}
