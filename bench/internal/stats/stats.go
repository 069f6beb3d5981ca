// Package stats sums up repeated measurements of one thing. Means are not in
// it: one hiccup of a shared machine spoils a mean and leaves a median alone.
package stats

import (
	"math"
	"slices"
)

// Spread is where repeated measurements lie. N zero means that there are none.
type Spread struct {
	N                int
	Min, Median, Max float64
}

// Of sums up the values, in whatever order they come.
func Of(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Spread{N: len(sorted), Min: sorted[0], Median: median(sorted), Max: sorted[len(sorted)-1]}
}

// median of an even number of values is halfway between the two in the middle.
func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Percentile is the smallest of the values that p percent of them do not
// exceed: a value that was measured, never one in between. It is NaN where
// there are no values.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
