//go:build !linux

package memory

// GiveBackPages does nothing, because other systems do not report where the file is
// mapped.
func GiveBackPages() {}
