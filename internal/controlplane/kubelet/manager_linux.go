package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cadvisor"
	"k8s.io/kubernetes/pkg/kubelet/cm"
)

// containerManager enforces nothing, as upstream's stub does, but knows the
// size of the disk, which a Pod may ask a part of.
type containerManager struct {
	cm.ContainerManager
	machine machine
}

func newContainerManager(m machine) cm.ContainerManager {
	return containerManager{ContainerManager: cm.NewStubContainerManager(), machine: m}
}

// GetCapacity tells what MachineInfo does not.
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

// NewPodContainerManager knows no cgroups of Pods, and that is no error.
func (m containerManager) NewPodContainerManager() cm.PodContainerManager {
	return withoutCgroups{m.ContainerManager.NewPodContainerManager()}
}

// withoutCgroups is upstream's stub, whose errors would be told every second.
type withoutCgroups struct{ cm.PodContainerManager }

// GetPodCgroupConfig tells that nothing is limited.
func (withoutCgroups) GetPodCgroupConfig(*corev1.Pod, corev1.ResourceName) (*cm.ResourceConfig, error) {
	return nil, nil // upstream takes a value as one with all its fields
}

// SetPodCgroupConfig does nothing, so that a Pod can be resized: its limits
// mean as little afterwards as before.
func (withoutCgroups) SetPodCgroupConfig(klog.Logger, *corev1.Pod, *cm.ResourceConfig) error {
	return nil
}
