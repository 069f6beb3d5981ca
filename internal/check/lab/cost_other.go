//go:build !linux

package lab

// resident returns 0, which means that the peak memory is unknown, because the unit of getrusage
// differs between systems.
func resident() int64 { return 0 }
