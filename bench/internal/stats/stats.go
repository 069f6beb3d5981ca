// Package stats summarizes repeated measurements of one quantity. It computes no means,
// because a single hiccup of a shared machine spoils a mean but not a median.
package stats

import (
	"math"
	"slices"
)

// Spread is the range of repeated measurements. If N is zero, there are no measurements.
type Spread struct {
	N                int
	Min, Median, Max float64
}

// Of summarizes the values, which may be in any order.
func Of(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Spread{N: len(sorted), Min: sorted[0], Median: median(sorted), Max: sorted[len(sorted)-1]}
}

// median returns the value in the middle, or the mean of the two middle values if the number of
// values is even.
func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Percentile returns the smallest of the values that is at least as large as p percent of them. It
// never interpolates. If there are no values, it returns NaN.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
