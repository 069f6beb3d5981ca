//go:build unix && !race

package book

import (
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

// A page that is sixteen times as large may take sixty times as long, but not 256 times.
// The test measures processor time without garbage collection. A bad measurement is
// repeated, because other programs on the machine may slow the test down, but not each
// time. A build with the race detector leaves the test out, because the detector would use
// most of the time that is measured.
func TestHostilePagesTakeLinearTime(t *testing.T) {
	const (
		size   = 1 << 18
		enough = 50 * time.Millisecond
		tries  = 10
	)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	small, big := hostile(size/16), hostile(size)
	took := func(page string) time.Duration {
		runtime.GC()
		start := processor(t)
		Read(files("a.md", page))
		return processor(t) - start
	}
	for name := range big {
		few, many := time.Hour, time.Hour
		for range tries {
			few, many = min(few, took(small[name])), min(many, took(big[name]))
			if many < enough || many < 60*few {
				break
			}
		}
		if many >= enough && many >= 60*few {
			t.Errorf("%s: %v for %d bytes and %v for %d", name, few, len(small[name]), many, len(big[name]))
		}
	}
}

// processor returns the processor time that this process has used.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
