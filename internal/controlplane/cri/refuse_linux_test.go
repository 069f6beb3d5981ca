package cri

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestWhatCannotBeHonouredIsRefusedInOneLine(t *testing.T) {
	p := newPlane(t)
	pod := p.pod()
	link := filepath.Join(p.volumes, "link")
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	type security = runtimeapi.LinuxContainerSecurityContext
	for name, test := range map[string]struct {
		change func(*runtimeapi.ContainerConfig, *security)
		want   string
	}{
		"privileged": {func(_ *runtimeapi.ContainerConfig, s *security) { s.Privileged = true }, "privileged"},
		"hostPath": {func(c *runtimeapi.ContainerConfig, _ *security) {
			withMounts(c, &runtimeapi.Mount{ContainerPath: "/x", HostPath: "/etc"})
		}, "hostPath /etc: only folders below " + p.volumes},
		"by a symlink": {func(c *runtimeapi.ContainerConfig, _ *security) {
			withMounts(c, &runtimeapi.Mount{ContainerPath: "/x", HostPath: link})
		}, "hostPath " + link},
		"by ..": {func(c *runtimeapi.ContainerConfig, _ *security) {
			withMounts(c, &runtimeapi.Mount{ContainerPath: "/x", HostPath: p.volumes + "/../.."})
		}, "hostPath"},
		"no volume": {func(c *runtimeapi.ContainerConfig, _ *security) {
			withMounts(c, &runtimeapi.Mount{ContainerPath: "/x", HostPath: p.volumes + "/none"})
		}, "no such file"},
		"image volume": {func(c *runtimeapi.ContainerConfig, _ *security) {
			withMounts(c, &runtimeapi.Mount{ContainerPath: "/x", Image: &runtimeapi.ImageSpec{}})
		}, "an image on this machine only names a program"},
		"Bidirectional": {func(c *runtimeapi.ContainerConfig, _ *security) {
			withMounts(c, &runtimeapi.Mount{ContainerPath: "/x", HostPath: p.volumes, Propagation: runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL})
		}, "Bidirectional"},
		"device": {func(c *runtimeapi.ContainerConfig, _ *security) {
			c.Devices = []*runtimeapi.Device{{ContainerPath: "/dev/kvm"}}
		}, "device /dev/kvm"},
		"claim": {func(c *runtimeapi.ContainerConfig, _ *security) { c.CDIDevices = []*runtimeapi.CDIDevice{{Name: "x"}} }, "claim"},
		"capability": {func(_ *runtimeapi.ContainerConfig, s *security) {
			s.Capabilities = &runtimeapi.Capability{AddCapabilities: []string{"NET_ADMIN"}}
		}, "NET_ADMIN"},
		"all": {func(_ *runtimeapi.ContainerConfig, s *security) {
			s.Capabilities = &runtimeapi.Capability{AddCapabilities: []string{"ALL"}}
		}, "ALL"},
		"hostPID": {func(_ *runtimeapi.ContainerConfig, s *security) {
			s.NamespaceOptions.Pid = runtimeapi.NamespaceMode_NODE
		}, "hostPID"},
		"target": {func(_ *runtimeapi.ContainerConfig, s *security) {
			s.NamespaceOptions.Pid = runtimeapi.NamespaceMode_TARGET
		}, "--target"},
		"profile": {func(_ *runtimeapi.ContainerConfig, s *security) {
			s.Seccomp = &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost}
		}, "seccompProfile"},
		"SELinux": {func(_ *runtimeapi.ContainerConfig, s *security) {
			s.SelinuxOptions = &runtimeapi.SELinuxOption{Level: "s0"}
		}, "seLinuxOptions"},
		"image": {func(c *runtimeapi.ContainerConfig, _ *security) {
			c.Image = &runtimeapi.ImageSpec{Image: "x", UserSpecifiedImage: "nginx"}
		}, "no program is given for image nginx: use koboshi up --run nginx=PATH"},
	} {
		config := containerConfig("exit", "0")
		test.change(config, config.Linux.SecurityContext)
		oneLine(t, name, test.want, func() error {
			_, err := p.CreateContainer(t.Context(), pod.id, config, pod.config)
			return err
		})
	}
	type whole = runtimeapi.LinuxSandboxSecurityContext
	for name, test := range map[string]struct {
		change func(*runtimeapi.PodSandboxConfig, *whole)
		want   string
	}{
		"privileged Pod": {func(_ *runtimeapi.PodSandboxConfig, s *whole) { s.Privileged = true }, "privileged"},
		"hostPID":        {func(_ *runtimeapi.PodSandboxConfig, s *whole) { s.NamespaceOptions.Pid = runtimeapi.NamespaceMode_NODE }, "hostPID"},
		"hostIPC":        {func(_ *runtimeapi.PodSandboxConfig, s *whole) { s.NamespaceOptions.Ipc = runtimeapi.NamespaceMode_NODE }, "hostIPC"},
		"sharing":        {func(_ *runtimeapi.PodSandboxConfig, s *whole) { s.NamespaceOptions.Pid = runtimeapi.NamespaceMode_POD }, "shareProcessNamespace"},
		"sysctls":        {func(c *runtimeapi.PodSandboxConfig, _ *whole) { c.Linux.Sysctls = map[string]string{"a": "b"} }, "sysctls"},
	} {
		config := p.podConfig()
		test.change(config, config.Linux.SecurityContext)
		oneLine(t, name, test.want, func() error {
			_, err := p.RunPodSandbox(t.Context(), config, "")
			return err
		})
	}
	oneLine(t, "runtimeClass", "runtimeClassName", func() error {
		_, err := p.RunPodSandbox(t.Context(), p.podConfig(), "gvisor")
		return err
	})
}

func oneLine(t *testing.T, name, want string, f func() error) {
	t.Helper()
	if err := f(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v", name, err)
	}
}

func TestWhatEveryPodHasIsNotRefused(t *testing.T) {
	config := containerConfig("exit", "0")
	s := config.Linux.SecurityContext
	s.Seccomp = &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	s.Capabilities = &runtimeapi.Capability{DropCapabilities: []string{"ALL"}, AddCapabilities: []string{"NET_BIND_SERVICE", "SYS_PTRACE"}}
	s.SupplementalGroups, s.MaskedPaths = []int64{2000}, []string{"/proc/kcore"}
	config.Linux.Resources = &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 1 << 20, CpuQuota: 1000}
	if _, status := newPlane(t).pod().run(config); status.GetExitCode() != 0 {
		t.Errorf("exit code %d: %s", status.GetExitCode(), status.GetMessage())
	}
}
