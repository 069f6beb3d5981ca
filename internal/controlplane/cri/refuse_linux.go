package cri

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// refuseSandbox returns an error if a setting of the Pod cannot be honored.
// The error becomes an Event of the Pod.
func refuseSandbox(config *runtimeapi.PodSandboxConfig, handler string) error {
	security := config.GetLinux().GetSecurityContext()
	if handler != "" {
		return fmt.Errorf("runtimeClassName with handler %s: Pods on this machine have only one runtime; remove runtimeClassName", handler)
	}
	if len(config.GetLinux().GetSysctls()) > 0 {
		return errors.New("securityContext.sysctls: a program that runs as this user cannot set sysctls; remove them from the Pod, or set them on this machine")
	}
	if security.GetPrivileged() {
		return errPrivileged
	}
	if err := refuseNamespaces(security.GetNamespaceOptions()); err != nil {
		return err
	}
	return refuseProfiles(security.GetSeccomp(), security.GetApparmor(), security.GetSelinuxOptions())
}

var errPrivileged = errors.New("securityContext.privileged: the program runs under your user ID, which is not root; remove the setting, or remove the image from --run")

func refuseNamespaces(options *runtimeapi.NamespaceOption) error {
	switch {
	case options.GetPid() == runtimeapi.NamespaceMode_NODE:
		return errors.New("hostPID: Pods on this machine cannot see the machine's processes; remove hostPID")
	case options.GetIpc() == runtimeapi.NamespaceMode_NODE:
		return errors.New("hostIPC: Pods on this machine cannot use the machine's IPC; remove hostIPC")
	case options.GetPid() == runtimeapi.NamespaceMode_TARGET:
		return errors.New("targetContainerName: containers on this machine do not share processes; omit --target")
	case options != nil && options.GetPid() == runtimeapi.NamespaceMode_POD:
		return errors.New("shareProcessNamespace: containers on this machine do not share processes; remove shareProcessNamespace")
	}
	return nil
}

func refuseProfiles(seccomp, apparmor *runtimeapi.SecurityProfile, selinux *runtimeapi.SELinuxOption) error {
	switch local := runtimeapi.SecurityProfile_Localhost; {
	case seccomp.GetProfileType() == local:
		return errors.New("securityContext.seccompProfile Localhost: there are no profiles on this machine; use RuntimeDefault")
	case apparmor.GetProfileType() == local:
		return errors.New("securityContext.appArmorProfile Localhost: there are no profiles on this machine; use RuntimeDefault")
	case selinux.GetUser() != "", selinux.GetRole() != "", selinux.GetType() != "", selinux.GetLevel() != "":
		return errors.New("securityContext.seLinuxOptions: a program that runs as this user cannot change its SELinux options; remove seLinuxOptions")
	}
	return nil
}

// refuseContainer returns an error if a container's setting cannot be honored.
func (r *Runtime) refuseContainer(config *runtimeapi.ContainerConfig) error {
	security := config.GetLinux().GetSecurityContext()
	if security.GetPrivileged() {
		return errPrivileged
	}
	if err := refuseNamespaces(security.GetNamespaceOptions()); err != nil {
		return err
	}
	if err := refuseProfiles(security.GetSeccomp(), security.GetApparmor(), security.GetSelinuxOptions()); err != nil {
		return err
	}
	if devices := config.GetDevices(); len(devices) > 0 {
		return fmt.Errorf("device %s (from a device plugin or a Block-mode volume): Pods on this machine get no devices; use a Filesystem-mode volume", devices[0].GetContainerPath())
	}
	if len(config.GetCDIDevices()) > 0 {
		return errors.New("devices from resource claims: Pods on this machine get no devices; remove the claim")
	}
	if _, err := capabilities(security.GetCapabilities()); err != nil {
		return err
	}
	for _, m := range config.GetMounts() {
		if err := r.refuseMount(m); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runtime) refuseMount(m *runtimeapi.Mount) error {
	if m.GetImage() != nil {
		return fmt.Errorf("image volume at %s: an image on this machine only names a program and contains no files; use a ConfigMap or an emptyDir", m.GetContainerPath())
	}
	if m.GetPropagation() == runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL {
		return fmt.Errorf("volume at %s: mountPropagation Bidirectional needs a privileged container; use HostToContainer", m.GetContainerPath())
	}
	path, err := filepath.EvalSymlinks(m.GetHostPath())
	if err != nil {
		return fmt.Errorf("volume at %s: %w", m.GetContainerPath(), err)
	}
	if !slices.ContainsFunc(r.hostPaths, func(dir string) bool { return within(dir, path) }) {
		return fmt.Errorf("hostPath %s: only folders below %s may be mounted; use one of those, or an emptyDir", m.GetHostPath(), strings.Join(r.config.HostPaths, " or "))
	}
	return nil
}

func within(dir, path string) bool {
	relative, err := filepath.Rel(dir, path)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, "../")
}

// grantable lists the capabilities that root has in a container by default, as
// in containerd, with their numbers (linux/capability.h). The capabilities are
// valid only inside the container's user namespace, which has no other user and
// no network.
var grantable = map[string]int{
	"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8,
	"NET_BIND_SERVICE": 10, "NET_RAW": 13, "SYS_CHROOT": 18, "MKNOD": 27, "AUDIT_WRITE": 29, "SETFCAP": 31,
}

// requestable lists the capabilities that root gets in a container on request;
// kubectl debug requests SYS_PTRACE by default. This capability applies only to
// processes in the same user namespace, which all belong to the container.
var requestable = map[string]int{"SYS_PTRACE": 19}

// capabilities returns the numbers of the capabilities that root gets in the
// container.
func capabilities(asked *runtimeapi.Capability) (granted []int, err error) {
	numbers := maps.Clone(grantable)
	for _, name := range asked.GetDropCapabilities() {
		if name = canonical(name); name == "ALL" {
			clear(numbers)
		}
		delete(numbers, name)
	}
	for _, name := range asked.GetAddCapabilities() {
		name = canonical(name)
		number, found := grantable[name]
		if !found {
			number, found = requestable[name]
		}
		if !found {
			return nil, fmt.Errorf("securityContext.capabilities.add %s: a program that runs as this user cannot have this capability; remove it, or remove the image from --run", name)
		}
		numbers[name] = number
	}
	return slices.Sorted(maps.Values(numbers)), nil
}

func canonical(capability string) string {
	return strings.TrimPrefix(strings.ToUpper(capability), "CAP_")
}
