package lab

import "syscall"

// resident is the most memory that this process has held, in bytes.
func resident() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss << 10 // kilobytes, see getrusage(2)
}
