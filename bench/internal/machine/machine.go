// Package machine describes those properties of the machine that affect the figures,
// without anything that would identify the machine.
package machine

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/koboshi-dev/koboshi/bench/internal/result"
)

// Describe reads /proc. Fields that /proc does not provide stay empty.
func Describe() result.Machine {
	m := result.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
	m.Kernel = strings.TrimSpace(read("/proc/sys/kernel/osrelease"))
	m.CPU = value(read("/proc/cpuinfo"), "model name")
	if kb, err := strconv.ParseInt(strings.TrimSuffix(value(read("/proc/meminfo"), "MemTotal"), " kB"), 10, 64); err == nil {
		m.Memory = kb * 1024
	}
	if average := strings.Fields(read("/proc/loadavg")); len(average) > 0 {
		m.Load, _ = strconv.ParseFloat(average[0], 64)
	}
	return m
}

// Warning returns a reason not to measure now, or an empty string.
func Warning(m result.Machine) string {
	if m.Load <= float64(m.Cores) {
		return ""
	}
	return fmt.Sprintf("the load is %.1f on %d cores: other programs are using this machine, so the figures will be unreliable; wait until the machine is idle", m.Load, m.Cores)
}

func read(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data)
}

// value returns the value of the first line "key : value" in a table of /proc.
func value(table, key string) string {
	for line := range strings.Lines(table) {
		if name, rest, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == key {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
