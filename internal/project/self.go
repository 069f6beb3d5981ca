package project

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// ownScheduler is the scheduler of the controller's Pod. Since it does not exist, the Pod gets no node,
// and no simulated kubelet runs it: the controller itself is the program that the Pod would run.
const ownScheduler = "koboshi-check"

// podName is the name that the controller believes its Pod to have.
func (m *manager) podName() string { return m.workload.Object.GetName() + "-0" }

// self returns the controller's Deployment and its Pod, and what they need, for a controller that looks
// them up: some ask which image they run, or make their Pod the owner of a lock. The Deployment has no
// replicas, so no other Pod is made for it. A StatefulSet is left out, because it would adopt the Pod,
// and delete it.
func (m *manager) self() (objects []unstructured.Unstructured, err error) {
	namespace := namespaceOf(m.workload.Object)
	if !slices.Contains(ownNamespaces, namespace) {
		objects = append(objects, object("v1", "Namespace", "", namespace))
	}
	if account := m.template.Spec.ServiceAccountName; account == "" || account == "default" {
		// The plane's controllers, which make this account, are not running yet.
		objects = append(objects, object("v1", "ServiceAccount", namespace, "default"))
	}
	if m.workload.is("apps", "Deployment") {
		deployment := *m.workload.Object.DeepCopy()
		deployment.SetNamespace(namespace)
		if err := unstructured.SetNestedField(deployment.Object, int64(0), "spec", "replicas"); err != nil {
			return nil, err
		}
		unstructured.RemoveNestedField(deployment.Object, "status")
		objects = append(objects, deployment)
	}
	pod, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m.pod(namespace))
	if err != nil {
		return nil, err
	}
	return append(objects, unstructured.Unstructured{Object: pod}), nil
}

// pod returns the Pod of the controller, which is ready. It has no address, because loopback addresses
// cannot be endpoints of a Service.
func (m *manager) pod(namespace string) *corev1.Pod {
	template := m.template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	pod.Name, pod.Namespace = m.podName(), namespace
	pod.Spec.SchedulerName = ownScheduler
	pod.Spec.AutomountServiceAccountToken = ptr.To(false) // the name of its volume would be random
	pod.Status.Phase = corev1.PodRunning
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue})
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	return pod
}
