package memory

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// GiveBackPages advises the kernel that no page of the program's file is needed at
// the moment. A program that links Kubernetes uses about 60 MB of its file only while it
// starts. The pages are clean, so a page that is used again is mapped from the page cache
// in a microsecond.
func GiveBackPages() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range unchanged(maps, program) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED)
	}
}

type mapping struct{ from, to uintptr }

// unchanged returns the mappings of the program in /proc/self/smaps that are
// identical to its file:
//
//	00400000-0390c000 r-xp 00000000 fe:00 1234       /usr/bin/koboshi
//	…
//	Anonymous:             0 kB
//
// It is not enough that a mapping is read-only: pages that a dynamic linker has relocated
// become read-only afterwards, but differ from the file.
func unchanged(smaps []byte, program string) (found []mapping) {
	var candidate *mapping
	for line := range bytes.Lines(smaps) {
		fields := bytes.Fields(line)
		switch {
		case len(fields) >= 5 && bytes.IndexByte(fields[0], '-') > 0:
			candidate = readOnly(fields, program)
		case candidate != nil && len(fields) == 3 && string(fields[0]) == "Anonymous:":
			if string(fields[1]) == "0" {
				found = append(found, *candidate)
			}
			candidate = nil
		}
	}
	return found
}

func readOnly(fields [][]byte, program string) *mapping {
	mode := string(fields[1])
	if len(fields) < 6 || string(bytes.Join(fields[5:], []byte(" "))) != program || mode != "r-xp" && mode != "r--p" {
		return nil
	}
	first, last, _ := bytes.Cut(fields[0], []byte("-"))
	from, err := strconv.ParseUint(string(first), 16, 64)
	if err != nil {
		return nil
	}
	to, err := strconv.ParseUint(string(last), 16, 64)
	if err != nil || to <= from {
		return nil
	}
	return &mapping{uintptr(from), uintptr(to)}
}
