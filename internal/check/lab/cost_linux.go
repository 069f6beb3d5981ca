package lab

import "syscall"

// resident returns the peak memory of this process, in bytes.
func resident() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss << 10 // kilobytes, see getrusage(2)
}
