package contract

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const isolated = "isolated"

// In the sandboxes of build systems, which have a loopback interface but no route, stock
// kube-apiserver finds no address to advertise unless a flag names one.
func TestAnEnvironmentNeedsNoDefaultRoute(t *testing.T) {
	oursOnly(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), roleVariable+"="+isolated, "TMPDIR="+t.TempDir())
	// A user namespace makes it possible to create the network namespace without
	// privileges.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("this machine allows no user namespaces: %v", err)
	}
	if err != nil {
		t.Errorf("without a default route: %v\n%s", err, out)
	}
}

func useWithoutNetwork() error {
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("bringing up the loopback interface: %w", err)
	}
	if conn, err := net.Dial("udp", "192.0.2.1:9"); err == nil { // sends nothing, and needs a route
		return errors.Join(errors.New("there is a route, so the test proves nothing"), conn.Close())
	}
	return useOnce(context.Background(), nil)
}

// loopbackUp has the effect of `ip link set lo up`.
func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}
