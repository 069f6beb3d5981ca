package kubelet

import (
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

func TestTheNodeIsAsLargeAsThisMachine(t *testing.T) {
	t.Parallel()
	m := machine{root: t.TempDir()}
	info, err := m.MachineInfo(klog.Background())
	if err != nil {
		t.Fatal(err)
	}
	if info.NumCores != runtime.NumCPU() || info.MemoryCapacity < 64<<20 || info.BootID == "" {
		t.Errorf("machine: %+v", info)
	}
	version, err := m.VersionInfo()
	if err != nil || version.KernelVersion == "" || version.ContainerOsVersion == "" {
		t.Errorf("version: %+v, %v", version, err)
	}
	disk, err := m.RootFsInfo()
	if err != nil || disk.Capacity == 0 || disk.Available > disk.Capacity || disk.Usage > disk.Capacity || disk.Device == "" {
		t.Errorf("disk: %+v, %v", disk, err)
	}
	storage := newContainerManager(m).GetCapacity(klog.Background(), true)[corev1.ResourceEphemeralStorage]
	if uint64(storage.Value()) != disk.Capacity {
		t.Errorf("ephemeral storage is %s, and the disk has %d", storage.String(), disk.Capacity)
	}
}
