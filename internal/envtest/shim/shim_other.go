//go:build !linux

package shim

// run returns immediately: without abstract sockets there is no host, and each server is
// a separate process.
func run(string) {}

func tidy(string, int) {}

func root() string { return "" }

func awaitParentsEnd() { pollParent() }

// sessionOf returns the same session for every process, because the real session is not known on
// this system.
func sessionOf(int) int { return 0 }
