// Package figures summarizes measured values, and records the conditions of a measurement.
package figures

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Conditions describe everything that affects a measurement, except the program itself.
type Conditions struct {
	Date     time.Time `json:"date"`
	CPUs     int       `json:"cpus"`
	Platform string    `json:"platform"`
	Go       string    `json:"go"`
	// Load is the one-minute load average at the beginning and at the end of the
	// measurement; -1 if unknown.
	Load [2]float64 `json:"load"`
}

// Now returns the conditions at the beginning of a measurement.
func Now() Conditions {
	return Conditions{
		Date: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Load: [2]float64{load(), -1},
	}
}

// End records the load at the end of a measurement.
func (c *Conditions) End() { c.Load[1] = load() }

// String formats the conditions as one line.
func (c *Conditions) String() string {
	return fmt.Sprintf("%d CPUs, %s, %s; load average %.1f before, %.1f after",
		c.CPUs, c.Platform, c.Go, c.Load[0], c.Load[1])
}

func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	load := -1.0
	if first := strings.Fields(string(text)); len(first) > 0 {
		_, _ = fmt.Sscan(first[0], &load)
	}
	return load
}

// Summary summarizes several measurements of the same value.
type Summary struct {
	Median float64   `json:"median"`
	Least  float64   `json:"least"`
	Most   float64   `json:"most"`
	All    []float64 `json:"all"`
}

// Summarize summarizes measurements, of which there must be at least one.
func Summarize(all []float64) Summary {
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	return Summary{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Least: sorted[0], Most: sorted[n-1], All: all}
}

// Verdict compares a value with its limit.
func Verdict(is, atMost float64) string {
	if is <= atMost {
		return "met"
	}
	return "MISSED"
}

// Write writes a report as JSON. If the path is empty, it writes nothing.
func Write(path string, report any) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the figures: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}
