// Package binds gives the programs of a Pod an address of their own although
// they share the network: a socket that is bound to all addresses of the
// machine is bound to the Pod's instead.
//
//	program ──bind(0.0.0.0:8080)──▶ seccomp filter ──▶ Serve, in the kubelet process
//	        ◀────── result ───────                      takes the same socket by
//	                                                    pidfd_getfd and binds it to
//	                                                    127.N.x.y:8080
//
// So two Pods may listen on the same port, and no port of a Pod is open to
// other machines. This is a convenience and not a security boundary: a program
// can still bind any address that it names.
//
// These stay unchanged: other addresses, sockets that are IPv6 only, sockets
// that are neither TCP nor UDP, and UDP sockets without a port, which are
// clients: one bound to a loopback address could not send to other machines. A
// 32-bit program is not filtered.
//
// Where the kernel has no such filter (before 5.6, or gVisor), or another
// filter already has a listener, programs run without it and share 0.0.0.0: the
// second program on a port gets the error that it is in use.
package binds
