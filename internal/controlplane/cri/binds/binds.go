// Package binds gives the programs of a Pod an address of their own although
// they share the network: a socket that asks for all addresses of the machine
// gets that of the Pod.
//
//	program ──bind(0.0.0.0:8080)──▶ seccomp filter ──▶ Serve, in the kubelet process
//	        ◀────── result ───────                      takes the same socket by
//	                                                    pidfd_getfd and binds it to
//	                                                    127.N.x.y:8080
//
// So two Pods may listen on the same port, and no port of a Pod is open to
// other machines. It is a convenience and no border: a program that wants
// another address names it.
//
// Left as they are: other addresses, sockets that are IPv6 only, sockets that
// are neither TCP nor UDP, and UDP sockets without a port, which are clients:
// one bound to a loopback address could not send to other machines. A 32-bit
// program is not filtered.
//
// Where the kernel has no such filter (before 5.6, or gVisor), or another
// filter with a listener is there already, programs run without, and share
// 0.0.0.0: the second that asks for a port is told that it is in use.
package binds
