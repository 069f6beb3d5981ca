package fleet

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/lab"
)

const (
	// goal is the share of each processor to keep busy, as far as the runs without a fault can tell.
	// If there is room for more labs, they are started later; see Work.Most.
	goal = 0.7
	// hurry is the load of a run with a fault, divided by the load of a run without one.
	// Runs without a fault pause three times as long (see carefully in package lab). It was
	// 1.1 for the whole plan of StorageBucket, and 1.5 for that of MarkdownView. It is
	// easier to start more labs later than to stop some.
	hurry = 1.5
	// maxPerProcessor is the maximum number of labs per processor. So many are only worth their start
	// while most of them wait for a controller that tries again after a minute: with four, MarkdownView
	// left the processors idle for a minute. Only firstPerProcessor are started before anything waits.
	maxPerProcessor, firstPerProcessor = 8, 4
	// watchersPerLab is the number of inotify instances that a lab may need: its API server has six, for its
	// certificates, and each of two managers two. A manager without them exits. Many systems allow a user 128.
	watchersPerLab = 10
	// maxLabs is the maximum number of labs, also for --workers. Each lab has separate
	// loopback addresses, and one machine has enough of them for 200 labs.
	maxLabs = 64
	// worthStarting is the number of faults that an additional lab must run to save more
	// time than its start takes.
	worthStarting = 10
)

// WorkFor returns the number of labs that are worth starting for a queue with the given
// number of faults.
func WorkFor(faults int) int { return faults / worthStarting }

// Size returns the number of labs to run at the same time. A run spends most of its time
// waiting for the controller to start and for writes to stop, so one processor can serve
// several labs. memory is the available memory in bytes, or 0 if it is unknown. work is
// the number of labs that have enough to do.
func Size(processors int, cost lab.Cost, memory int64, work int) int {
	return size(processors, cost, memory, work, watchers())
}

func size(processors int, cost lab.Cost, memory int64, work, watchers int) int {
	processors = min(processors, maxLabs)
	if cost.Busy <= 0 {
		return processors
	}
	n := int(math.Round(goal * float64(processors) / (hurry * cost.Busy)))
	return max(min(n, firstPerProcessor*processors, most(processors, cost, memory, work, watchers)), processors)
}

// Most returns the largest number of labs that the machine has room for, and that have enough to do. Its
// parameters are those of Size.
func Most(processors int, cost lab.Cost, memory int64, work int) int {
	return most(processors, cost, memory, work, watchers())
}

func most(processors int, cost lab.Cost, memory int64, work, watchers int) int {
	n := firstPerProcessor * processors
	if watchers > 0 {
		n = min(maxPerProcessor*processors, max(watchers/watchersPerLab, processors))
	}
	n = min(n, maxLabs, work)
	if memory > 0 && cost.Memory > 0 {
		n = min(n, int(memory/2/cost.Memory)) // half is left for controllers and other programs
	}
	return n
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
