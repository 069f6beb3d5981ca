package view

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/rootfs"
	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/thread"
)

// View is a mount namespace.
type View struct{ namespace *os.File }

// New makes a view. The staging folder is an empty folder that New needs while it runs.
func New(staging string, mounts []Mount) (*View, error) {
	v := &View{}
	err := thread.Run(func() (err error) {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("creating a mount namespace: %w", err)
		}
		var made []rootfs.Mount
		for _, m := range mounts {
			made = append(made, rootfs.Mount{Source: m.Source, Target: m.Target, ReadOnly: !m.Writable})
		}
		if err := rootfs.Attach(staging, made); err != nil {
			return err
		}
		v.namespace, err = os.Open("/proc/thread-self/ns/mnt")
		return err
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Enter moves the calling thread into the view, with "/" as its working directory. The thread
// must be locked, and cannot leave the view. Processes that it starts do not get the
// capabilities that Attributes gave to this program.
func (v *View) Enter() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("entering a mount namespace: %w", err)
	}
	if err := unix.Setns(int(v.namespace.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("entering a mount namespace: %w", err)
	}
	if os.Geteuid() == 0 {
		return nil
	}
	// The new process must not get the capabilities of this one.
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}

// Close releases the view. Processes that run in the view keep it.
func (v *View) Close() error { return v.namespace.Close() }

// capabilities lists what a program needs to make and enter views.
var capabilities = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT}

// Attributes returns the attributes with which to start a program that calls New. It returns
// nil if the user needs no user namespace, or if the system forbids user namespaces.
func Attributes() *syscall.SysProcAttr {
	if os.Geteuid() == 0 || !allowed() {
		return nil
	}
	return attributes()
}

// attributes puts the program into a new user namespace, in which it has the same user and
// group as outside.
func attributes() *syscall.SysProcAttr {
	user, group := os.Geteuid(), os.Getegid()
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: user, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: group, HostID: group, Size: 1}},
		AmbientCaps: capabilities,
	}
}

// allowed reports whether the system lets this user create user namespaces. A container may have no program
// such as true. Then the attempt to start one fails only after the namespace has been created, because there
// is no such file.
var allowed = sync.OnceValue(func() bool {
	program, err := exec.LookPath("true")
	if err != nil {
		program = "/nonexistent/true"
	}
	err = (&exec.Cmd{Path: program, Args: []string{program}, SysProcAttr: attributes()}).Run()
	return err == nil || program == "/nonexistent/true" && errors.Is(err, fs.ErrNotExist)
})

// KeepFromChildren ensures that even the processes that this program starts outside of views do not
// get the capabilities that Attributes gave to this program. A program that was started with
// Attributes calls KeepFromChildren first.
func KeepFromChildren() {
	if os.Geteuid() == 0 {
		return // the children of root have the rights of root
	}
	// With cgo, this call is not possible, and the children keep capabilities that are
	// useless outside their user namespace.
	_, _, _ = syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
}
