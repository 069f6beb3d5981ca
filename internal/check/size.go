package check

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/lab"
)

const (
	// goal is how much of each processor is to be kept busy. Above that requests
	// wait for each other, and what was learnt of pauses does not hold any more.
	goal = 0.7
	// hurry is how much busier a run with a fault is than one without, whose pauses
	// are three times as long (see lab's carefully).
	hurry = 1.5
	// mostPerProcessor is how many labs a processor has at most. Beyond it they gain
	// little: starting them takes longer than they save.
	mostPerProcessor = 4
	// mostLabs is how many there are at most, as --workers has it: each has loopback
	// addresses of its own, and there are 200 of those on a machine.
	mostLabs = 64
	// worthStarting is how many faults there have to be for a lab more to save more
	// time than its start takes.
	worthStarting = 10
)

// size is how many labs run at once. A run is mostly waiting, for a controller to
// start and for a world to stay at rest, and so a processor suffices for several.
// Memory is what the machine has left in bytes, 0 if that is not known, and work
// how many labs have enough to do.
func size(processors int, cost lab.Cost, memory int64, work int) int {
	processors = min(processors, mostLabs)
	if cost.Busy <= 0 {
		return processors
	}
	n := int(goal * float64(processors) / (hurry * cost.Busy))
	n = min(n, mostPerProcessor*processors, mostLabs, work)
	if memory > 0 && cost.Memory > 0 {
		n = min(n, int(memory/2/cost.Memory)) // half is left to controllers and all else
	}
	return max(n, processors)
}

// dearest is the cost of the scenario that costs most.
func (c *check) dearest() (most lab.Cost) {
	for _, l := range c.lessons {
		most.Busy, most.Memory = max(most.Busy, l.Cost.Busy), max(most.Memory, l.Cost.Memory)
	}
	return most
}

// free is how much memory the machine has left, in bytes; 0 if it does not say.
func free() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	return available(f)
}

// available reads MemAvailable of meminfo, as proc(5) describes it.
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
