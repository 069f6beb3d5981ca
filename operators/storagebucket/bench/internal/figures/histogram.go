package figures

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// A Histogram is a Prometheus histogram: for each upper bound, the number of
// observations that did not exceed it.
type Histogram struct {
	bounds []float64 // ascending, the last +Inf
	counts []float64 // cumulative
}

// ReadHistogram reads metrics in the text format, and returns the histogram that has the
// given name and no labels. If there is no such histogram, the returned one is empty.
func ReadHistogram(r io.Reader, name string) (Histogram, error) {
	var h Histogram
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name+`_bucket{le="`)
		if !ok {
			continue
		}
		bound, value, ok := strings.Cut(rest, `"} `)
		le, err := strconv.ParseFloat(bound, 64)
		if !ok || err != nil {
			return Histogram{}, fmt.Errorf("reading metric %s: unexpected line %q", name, lines.Text())
		}
		count, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return Histogram{}, fmt.Errorf("reading metric %s: unexpected line %q", name, lines.Text())
		}
		h.bounds, h.counts = append(h.bounds, le), append(h.counts, count)
	}
	if err := lines.Err(); err != nil {
		return Histogram{}, fmt.Errorf("reading metric %s: %w", name, err)
	}
	return h, nil
}

// Since returns the observations that were added after an earlier reading of the histogram.
func (h Histogram) Since(before Histogram) Histogram {
	d := Histogram{bounds: h.bounds, counts: append([]float64(nil), h.counts...)}
	for i := range min(len(d.counts), len(before.counts)) {
		d.counts[i] -= before.counts[i]
	}
	return d
}

// AtMost returns the smallest upper bound such that at least the given share of the
// observations are less than or equal to it. The exact percentile is at most this bound.
// AtMost returns NaN if there are no observations.
func (h Histogram) AtMost(share float64) float64 {
	if len(h.counts) == 0 || h.counts[len(h.counts)-1] == 0 {
		return math.NaN()
	}
	want := share * h.counts[len(h.counts)-1]
	for i, count := range h.counts {
		if count >= want {
			return h.bounds[i]
		}
	}
	return math.Inf(1)
}
