package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cadvisor"
	"k8s.io/kubernetes/pkg/kubelet/cm"
)

// containerManager enforces nothing, like upstream's stub. Unlike the stub, it
// reports the size of the disk, because Pods may request ephemeral storage.
type containerManager struct {
	cm.ContainerManager
	machine machine
}

func newContainerManager(m machine) cm.ContainerManager {
	return containerManager{ContainerManager: cm.NewStubContainerManager(), machine: m}
}

// GetCapacity returns the capacity that MachineInfo does not contain.
func (m containerManager) GetCapacity(_ klog.Logger, storage bool) corev1.ResourceList {
	if !storage {
		return corev1.ResourceList{}
	}
	info, err := m.machine.RootFsInfo()
	if err != nil {
		return corev1.ResourceList{}
	}
	return cadvisor.EphemeralStorageCapacityFromFsInfo(info)
}

// NewPodContainerManager returns a manager that does not manage cgroups, but
// returns no errors.
func (m containerManager) NewPodContainerManager() cm.PodContainerManager {
	return withoutCgroups{m.ContainerManager.NewPodContainerManager()}
}

// withoutCgroups wraps upstream's stub, whose errors would otherwise be logged
// every second.
type withoutCgroups struct{ cm.PodContainerManager }

// GetPodCgroupConfig returns no limits.
func (withoutCgroups) GetPodCgroupConfig(*corev1.Pod, corev1.ResourceName) (*cm.ResourceConfig, error) {
	return nil, nil // upstream assumes that a non-nil value has all its fields
}

// SetPodCgroupConfig does nothing and returns no error, so that a Pod can be
// resized. The Pod's limits are ignored before and after the resize.
func (withoutCgroups) SetPodCgroupConfig(klog.Logger, *corev1.Pod, *cm.ResourceConfig) error {
	return nil
}
