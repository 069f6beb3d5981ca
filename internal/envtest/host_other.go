//go:build !linux

package envtest

import "os"

// Host only prints an error, because hosts exist only on Linux; see package shim.
func Host() int {
	_, _ = os.Stderr.WriteString("koboshi: on this system, no host process can run the servers\n")
	return exitError
}
