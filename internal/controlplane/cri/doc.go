// Package cri is a container runtime whose containers are processes of this machine. The package
// implements the Kubernetes Container Runtime Interface as Go methods, which upstream's kubelet
// calls in the same process.
//
//	kubelet ──RunPodSandbox──▶ sandbox: an address of 127.N.0.0/16
//	        ──CreateContainer▶ container: refused, or remembered
//	        ──StartContainer─▶ thread ──▶ init ──exec──▶ program
//
// A container starts in two steps. A temporary thread of this process prepares
// the mount namespace, the files (package rootfs), the host name and the filter
// for bind (package binds). A process that is cloned from the temporary thread,
// with its own user, mount and pid namespaces, sets up /proc and the
// capabilities and executes the program (package container). For a command of
// kubectl exec or of a probe, a temporary thread joins the mount and pid
// namespaces of the container, and the command starts with the same init. The
// command has a separate user namespace, with the same single user as the
// container, because a process with threads cannot join a user namespace.
// Therefore, a command may send signals to the program of the container, but may
// not trace it.
//
// The calling process must be root of a user namespace in which no other user
// exists, pid 1 of a pid namespace with its own /proc, and alone in its mount
// namespace. Because the calling process is pid 1, all containers end when it
// ends, for whatever reason. The runtime keeps no state on disk, and needs
// Linux 5.12; package binds needs 5.6.
//
// Some settings are ignored, because every Pod has them and nothing depends on them here: CPU and
// memory limits, the runtime's default seccomp and AppArmor profiles, masked paths of /proc,
// supplementary groups, and DNS settings. Any other setting that cannot be honored is refused with
// an error, which becomes an Event of the Pod.
package cri
