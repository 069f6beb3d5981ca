package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU times in /proc. It is 1/100 s on every
// architecture Go runs on; see proc(5) and sysconf(3), _SC_CLK_TCK.
const clockTick = time.Second / 100

// Memory is the memory use of a process, in bytes.
type Memory struct {
	// Resident is the RSS: all pages of the process in memory, including those of its binary.
	Resident int64
	// Anonymous is the part of Resident that is not backed by files: heap, stacks,
	// runtime.
	Anonymous int64
	// Proportional is the PSS: the size of each shared page is divided by the number of
	// processes that share the page.
	Proportional int64
	// Peak is the largest RSS so far.
	Peak int64
}

// CPU is the time the process has spent in user and kernel mode so far.
func (p *Process) CPU() (time.Duration, error) {
	text, err := p.proc("stat")
	if err != nil {
		return 0, err
	}
	return parseCPU(text)
}

// parseCPU reads /proc/PID/stat. The name in the second field may contain
// anything, so parsing starts after the last parenthesis. utime and stime are the 14th and
// the 15th field of the line; see proc(5).
func parseCPU(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("reading CPU time: /proc/PID/stat has only %d fields after the name", len(fields))
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading CPU time: %w", err)
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading CPU time: %w", err)
	}
	return time.Duration(user+system) * clockTick, nil
}

// Memory reads the current memory use of the process.
func (p *Process) Memory() (Memory, error) {
	rollup, err := p.proc("smaps_rollup")
	if err != nil {
		return Memory{}, err
	}
	status, err := p.proc("status")
	if err != nil {
		return Memory{}, err
	}
	var m Memory
	for _, f := range []struct {
		text, field string
		into        *int64
	}{
		{rollup, "Rss:", &m.Resident},
		{rollup, "Anonymous:", &m.Anonymous},
		{rollup, "Pss:", &m.Proportional},
		{status, "VmHWM:", &m.Peak},
	} {
		if *f.into, err = parseKilobytes(f.text, f.field); err != nil {
			return Memory{}, err
		}
	}
	return m, nil
}

// ForgetPeak resets Memory's Peak: from now on, Peak is the largest RSS since this call.
func (p *Process) ForgetPeak() error {
	if err := os.WriteFile(p.path("clear_refs"), []byte("5"), 0); err != nil {
		return fmt.Errorf("resetting the peak memory of %s: %w", p.name, err)
	}
	return nil
}

func parseKilobytes(text, field string) (int64, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, field)
		if !ok {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading %s: %w", field, err)
		}
		return kb << 10, nil
	}
	return 0, fmt.Errorf("reading memory: there is no field %s", field)
}

func (p *Process) path(file string) string {
	return filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), file)
}

func (p *Process) proc(file string) (string, error) {
	text, err := os.ReadFile(p.path(file))
	if err != nil {
		return "", fmt.Errorf("reading the cost of %s (needs Linux): %w", p.name, err)
	}
	return string(text), nil
}
