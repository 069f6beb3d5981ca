// Package cri is a container runtime whose containers are processes of this
// machine: the Kubernetes Container Runtime Interface as Go values, which
// upstream's kubelet calls in its own process.
//
//	kubelet ──RunPodSandbox──▶ sandbox: an address of 127.N.0.0/16
//	        ──CreateContainer▶ container: refused, or remembered
//	        ──StartContainer─▶ thread ──▶ init ──exec──▶ program
//
// A container starts in two places. On a thread of this process, which ends
// afterwards: mount namespace, files (package rootfs), host name, filter of
// bind (package binds). In a process cloned from that thread with a user, mount
// and pid namespace: /proc, capabilities, exec (package container). A command
// of kubectl exec or of a probe joins the mount and pid namespaces on such a
// thread and starts with the same init. It has a separate user namespace with
// the same single user, because a process with threads cannot join one. So the
// command may signal the program, but not trace it.
//
// The calling process must be root of a user namespace in which no other user
// exists, pid 1 of a pid namespace with its own /proc, and alone in its mount
// namespace. Because it is pid 1, all containers end with it, however it ends;
// there is no state on disk. It needs Linux 5.12; package binds needs 5.6.
//
// Ignored, because every Pod has them and nothing depends on them here: limits
// of CPU and memory, the runtime's default seccomp and AppArmor profiles,
// masked paths of /proc, supplementary groups, DNS settings. Any other setting
// that cannot be honoured is refused with an error that becomes an Event of the
// Pod.
package cri
