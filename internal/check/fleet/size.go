package fleet

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/lab"
)

const (
	// goal is the share of each processor to keep busy. Above that, requests wait for
	// each other, and the pauses that were learnt no longer hold.
	goal = 0.7
	// hurry is the ratio of the load of a run with a fault to that of one without, whose
	// pauses are three times as long (see lab's carefully).
	hurry = 1.5
	// maxPerProcessor is the largest number of labs per processor. More labs gain
	// little: starting them takes longer than they save.
	maxPerProcessor = 4
	// maxLabs is the largest number of labs, also for --workers: each has loopback
	// addresses of its own, and one machine has enough for 200.
	maxLabs = 64
	// worthStarting is the number of faults for which one more lab saves more time
	// than its start takes.
	worthStarting = 10
)

// WorkFor returns how many labs a queue of this many faults keeps busy long enough
// to be worth starting.
func WorkFor(faults int) int { return faults / worthStarting }

// Size returns how many labs to run at once. A run mostly waits, for a controller
// to start and for the world to stay at rest, so one processor serves several labs.
// Memory is the available memory in bytes, 0 if unknown; work is the number of labs
// that have enough to do.
func Size(processors int, cost lab.Cost, memory int64, work int) int {
	processors = min(processors, maxLabs)
	if cost.Busy <= 0 {
		return processors
	}
	n := int(goal * float64(processors) / (hurry * cost.Busy))
	n = min(n, maxPerProcessor*processors, maxLabs, work)
	if memory > 0 && cost.Memory > 0 {
		n = min(n, int(memory/2/cost.Memory)) // half is left for controllers and other programs
	}
	return max(n, processors)
}

// FreeMemory returns the available memory of this machine in bytes, or 0 if it is
// unknown.
func FreeMemory() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	return available(f)
}

// available reads MemAvailable of meminfo, as described in proc(5).
func available(meminfo io.Reader) (bytes int64) {
	for lines := bufio.NewScanner(meminfo); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			var kilobytes int64
			_, _ = fmt.Sscan(text, &kilobytes)
			return kilobytes << 10
		}
	}
	return 0
}
