package project

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ownScheduler is the scheduler of the controller's Pod. Since it does not exist, the Pod gets no node,
// and no simulated kubelet runs it: the controller itself is the program that the Pod would run.
const ownScheduler = "koboshi-check"

// podName is the name that the controller believes its Pod to have.
func (m *manager) podName() string { return m.workload.Object.GetName() + "-0" }

// nameHost sets the variable that a container runtime sets in every container. Many controllers read
// the name of their Pod from it.
func (m *manager) nameHost() {
	const name = "HOSTNAME="
	if !slices.ContainsFunc(m.env, func(e string) bool { return strings.HasPrefix(e, name) }) {
		m.env = append(m.env, name+m.podName())
	}
}

// self returns the controller's workload and its Pod, for a controller that looks them up: some ask
// which image they run, or make their Pod the owner of a lock. The workload has no replicas, so no
// other Pod is made for it.
func (m *manager) self() (objects []unstructured.Unstructured, err error) {
	if namespace := namespaceOf(m.workload.Object); !slices.Contains(ownNamespaces, namespace) {
		objects = append(objects, object("v1", "Namespace", "", namespace))
	}
	if workload := *m.workload.Object.DeepCopy(); m.workload.is("apps", "Deployment", "StatefulSet") {
		workload.SetNamespace(namespaceOf(workload))
		if err := unstructured.SetNestedField(workload.Object, int64(0), "spec", "replicas"); err != nil {
			return nil, err
		}
		unstructured.RemoveNestedField(workload.Object, "status")
		objects = append(objects, workload)
	}
	template := m.template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	pod.Name, pod.Namespace = m.podName(), namespaceOf(m.workload.Object)
	pod.Spec.SchedulerName = ownScheduler
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "127.0.0.1"}
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue})
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return nil, err
	}
	return append(objects, unstructured.Unstructured{Object: object}), nil
}
