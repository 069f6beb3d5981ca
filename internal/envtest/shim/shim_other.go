//go:build !linux

package shim

// run returns at once: without abstract sockets there is no host, and each
// server is a process of its own.
func run(string) {}

func root() string { return "" }

// AwaitParentsEnd returns when the process that started this one has ended.
func AwaitParentsEnd() { pollParent() }
