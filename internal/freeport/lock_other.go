//go:build !linux && !darwin

package freeport

import "os"

const shared, exclusive = 0, 0

// lock reports that reservations mean nothing on this system, because envtest does not
// lock them.
func lock(*os.File, int) lockResult { return unsupported }

func unlock(*os.File) {}

func await(*os.File) { select {} }
