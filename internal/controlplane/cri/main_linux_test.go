package cri

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideVariable is set in the process that runs the tests.
const insideVariable = "KOBOSHI_TEST_INSIDE"

// TestMain runs the tests in the environment that the runtime needs: as root
// of a user namespace and pid 1 of a pid namespace. The test binary is also
// the program of the containers.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == programVerb:
		os.Exit(program(os.Args[2:]))
	case len(os.Args) > 1 && os.Args[1] == victimVerb:
		os.Exit(victim(os.Args[2]))
	case os.Getenv(insideVariable) != "":
		if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
			fmt.Fprintln(os.Stderr, "mounting /proc:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	inside := exec.Command("/proc/self/exe", os.Args[1:]...)
	inside.Args[0] = os.Args[0]
	inside.Env = append(os.Environ(), insideVariable+"=1")
	os.Exit(namespaced(inside))
}

func namespaced(inside *exec.Cmd) int {
	inside.Stdout, inside.Stderr = os.Stdout, os.Stderr
	inside.SysProcAttr = planeNamespaces()
	err := inside.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	case errors.Is(err, os.ErrPermission):
		// Without user namespaces, nothing can be tested, and TestMain has no
		// t.Skip.
		fmt.Fprintln(os.Stderr, "SKIP: this system forbids user namespaces:", err)
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// planeNamespaces returns the attributes for the namespaces that koboshi up
// gives the kubelet.
func planeNamespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}
