//go:build !linux

package shim

// run returns at once: without abstract sockets there is no host, and each server is a
// process of its own.
func run(string) {}

func tidy(string, int) {}

func root() string { return "" }

func awaitParentsEnd() { pollParent() }

// sessionOf makes all processes members of one session: which they are in is not known
// here.
func sessionOf(int) int { return 0 }
