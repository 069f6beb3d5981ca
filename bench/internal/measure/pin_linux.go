package measure

import "golang.org/x/sys/unix"

// pin restricts the calling thread, and the processes that it starts, to the first n of
// the cores that it may use now.
func pin(n int) error {
	var may, shall unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return err
	}
	for core := 0; shall.Count() < min(n, may.Count()); core++ {
		if may.IsSet(core) {
			shall.Set(core)
		}
	}
	return unix.SchedSetaffinity(0, &shall)
}
