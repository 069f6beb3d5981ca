package main

import (
	"encoding/json"
	"math"
	"strconv"
)

// Figure is one number of a run; NaN if the number could not be obtained.
type Figure float64

// MarshalJSON writes a figure that was not obtained as null.
func (f Figure) MarshalJSON() ([]byte, error) {
	if !f.obtained() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

func (f Figure) obtained() bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }

func (f Figure) String() string {
	switch {
	case math.IsNaN(float64(f)):
		return "-"
	case math.IsInf(float64(f), 1):
		return "never"
	case f == 0:
		return "0"
	case math.Abs(float64(f)) < 10:
		return strconv.FormatFloat(float64(f), 'f', 2, 64)
	case math.Abs(float64(f)) < 1000:
		return strconv.FormatFloat(float64(f), 'f', 1, 64)
	}
	return strconv.FormatFloat(float64(f), 'f', 0, 64)
}

// A row is one line of the table.
type row struct {
	key, label string
	// ours reports whether only the operator under test, and not the baseline, has the
	// figure.
	ours bool
}

// section is a part of the table.
type section struct {
	title string
	rows  []row
}

var sections = []section{
	{"Steady state", []row{
		{key: "cpu", label: "CPU seconds per minute"},
		{key: "memoryMean", label: "memory, mean RSS, MiB"},
		{key: "memoryPeak", label: "memory, largest RSS, MiB"},
		{key: "memoryAnonymous", label: "  of which heap and stacks, mean, MiB"},
		{key: "memoryProportional", label: "memory, PSS at the end, MiB"},
		{key: "requests", label: "S3 requests per second, mean"},
		{key: "requestsPeak", label: "S3 requests per second, peak"},
		{key: "peakOverMean", label: "  peak / mean"},
		{key: "lagP99", label: "lag behind due time, p99, s"},
		{key: "lagMax", label: "lag behind due time, largest, s"},
		{key: "reportedLagP99", label: "  p99 by its own metric, s, at most", ours: true},
		{key: "reportedLagMax", label: "  largest by its own metric, at most", ours: true},
		{key: "statusWrites", label: "status writes per minute"},
		{key: "planeCPU", label: "CPU seconds per minute, API server"},
	}},
	{"Store down", []row{
		{key: "outageHalf", label: "half of the buckets show it after, s"},
		{key: "outageAll", label: "all show it after, s"},
		{key: "outageRequests", label: "requests per second, mean"},
		{key: "outageRequestsLater", label: "  after the first 5 s"},
		{key: "outagePeak", label: "requests per second, peak"},
		{key: "outageCPU", label: "CPU seconds per minute"},
	}},
	{"Store back", []row{
		{key: "recoveryHalf", label: "half of the buckets show it after, s"},
		{key: "recoveryAll", label: "all show it after, s"},
		{key: "recoveryPeak", label: "requests per second, peak"},
	}},
	{"Start", []row{
		{key: "startAll", label: "all buckets probed and healthy after, s"},
	}},
}
