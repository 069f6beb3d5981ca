package fleet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// measureLoad returns the busy share of the processors in the following window, from 0 to 1. known is false
// if the share cannot be measured, or if ctx ends before.
func measureLoad(ctx context.Context) (busy float64, known bool) {
	before, known := readProcessorTime()
	if !known {
		return 0, false
	}
	wait(ctx, window)
	after, known := readProcessorTime()
	return after.busyShare(before), known && ctx.Err() == nil
}

// processorTime is the time that all processors of the machine have spent since it started, in
// ticks. Its unit does not matter, because only shares of it are used.
type processorTime struct{ busy, total uint64 }

// busyShare returns the share of the time since before in which the processors were busy, from 0 to 1.
func (t processorTime) busyShare(before processorTime) float64 {
	if t.total <= before.total || t.busy < before.busy {
		return 1 // nothing is known, so the processors may be busy
	}
	return float64(t.busy-before.busy) / float64(t.total-before.total)
}

// readProcessorTime returns the processor time of this machine. known is false if the system does not
// report it, or if this process may use only some of the processors, about which it says nothing.
func readProcessorTime() (t processorTime, known bool) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return processorTime{}, false
	}
	defer func() { _ = f.Close() }()
	t, processors := parseProcessorTime(f)
	return t, processors == runtime.GOMAXPROCS(0)
}

// parseProcessorTime reads /proc/stat, as described in proc(5), and returns the processor time and the number
// of processors. Time that a hypervisor gave to other machines counts as busy, because it was not free, and time
// of programs that give way to others (nice) as idle.
func parseProcessorTime(stat io.Reader) (t processorTime, processors int) {
	for lines := bufio.NewScanner(stat); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		if fields[0] != "cpu" {
			processors++
			continue
		}
		for i, field := range fields[1:9] { // user, nice, system, idle, iowait, irq, softirq, steal
			var ticks uint64
			_, _ = fmt.Sscan(field, &ticks)
			t.total += ticks
			if i != 1 && i != 3 && i != 4 {
				t.busy += ticks
			}
		}
	}
	return t, processors
}
