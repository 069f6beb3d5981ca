package project

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

const (
	// nodeName is the name of the node on which a controller believes that it
	// runs.
	nodeName = "node-1"
	// nodeMemory is the memory of the node, which a container without a limit may use.
	nodeMemory = 8 << 30
)

// field returns the value of a field of the downward API, by a kubelet's rules: a label or
// an annotation that does not exist is empty.
func (r *resolver) field(path string) (string, bool) {
	switch path {
	case "metadata.name":
		return r.m.podName(), true
	case "metadata.namespace":
		return r.id.Namespace, true
	case "metadata.uid":
		return "$(" + subject.PodUID + ")", true
	case "spec.serviceAccountName":
		return r.id.Name, true
	case "spec.nodeName":
		return nodeName, true
	case "status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs":
		return "$(" + subject.Address + ")", true
	case "metadata.labels":
		return formatMap(r.m.template.Labels), true
	case "metadata.annotations":
		return formatMap(r.m.template.Annotations), true
	}
	if key, ok := subscript(path, "metadata.labels"); ok {
		return r.m.template.Labels[key], true
	}
	if key, ok := subscript(path, "metadata.annotations"); ok {
		return r.m.template.Annotations[key], true
	}
	return "", false
}

// subscript returns the key of a path such as metadata.labels['app'].
func subscript(path, field string) (string, bool) {
	key, ok := strings.CutPrefix(path, field+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(key, "']")
}

// formatMap formats labels as a kubelet does in a file: one quoted value per line.
func formatMap(values map[string]string) string {
	var lines []string
	for key, value := range values {
		lines = append(lines, fmt.Sprintf("%s=%q", key, value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// resource returns a limit or request of the container in units of the divisor, rounded up.
// Without a limit, a container may use all of its node; without a request, it requests its
// limit.
func (r *resolver) resource(ref *corev1.ResourceFieldSelector) (string, bool) {
	container := r.m.container
	for _, c := range r.m.template.Spec.Containers {
		if c.Name == ref.ContainerName {
			container = c
		}
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	resourceName := corev1.ResourceName(name)
	quantity, set := container.Resources.Limits[resourceName]
	if kind == "requests" {
		if request, ok := container.Resources.Requests[resourceName]; ok || !set {
			quantity, set = request, true
		}
	}
	if !set {
		quantity = map[corev1.ResourceName]resource.Quantity{
			corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(nodeMemory, resource.BinarySI),
		}[resourceName]
	}
	if kind != "limits" && kind != "requests" {
		return "", false
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	value, unit := quantity.Value(), divisor.Value()
	if resourceName == corev1.ResourceCPU {
		value, unit = quantity.MilliValue(), divisor.MilliValue()
	}
	if unit <= 0 {
		return "", false
	}
	return strconv.FormatInt((value+unit-1)/unit, 10), true
}
