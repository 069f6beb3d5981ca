// Package binds gives the programs of a Pod a separate address although all
// Pods share the network: if a program binds a socket to all addresses of the
// machine, the socket is bound to the address of the Pod instead.
//
//	program ──bind(0.0.0.0:8080)──▶ seccomp filter ──▶ Serve, in the kubelet process
//	        ◀────── result ───────                      takes the same socket by
//	                                                    pidfd_getfd and binds it to
//	                                                    127.N.x.y:8080
//
// So two Pods may listen on the same port, and no port of a Pod is open to other machines. A program that
// connects to localhost at a port on which its Pod listens is connected to the Pod's address in the same way,
// because a program may test its own server. The filter is a convenience, not a security boundary: a program can still bind a socket to any
// address that it names explicitly.
//
// Some calls are left unchanged: those with other addresses, and those for
// sockets that are IPv6-only, or neither TCP nor UDP. UDP sockets without a
// port are also left unchanged, because they are clients, and a client that is
// bound to a loopback address could not send to other machines. 32-bit programs
// are not filtered.
//
// Programs run without the filter if the kernel does not support it (before 5.6, or
// gVisor), or if another seccomp filter already has a listener. Without the filter,
// programs share 0.0.0.0: the second program on a port gets the error that the port is in
// use.
//
// A program in a Pod may itself start programs with addresses of their own, as koboshi check does. The kernel
// allows no second filter with a listener, so these programs name their address in their environment, and the
// first filter gives it to them.
package binds

// Variable is the environment variable in which a program in a Pod names a loopback address for the programs
// that it starts; see Nested.
const Variable = "KOBOSHI_ADDRESS"
