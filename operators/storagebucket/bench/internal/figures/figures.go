// Package figures computes the reported numbers from the records of a run. All times
// are in nanoseconds since 1970, and all lists of times are sorted. A period includes
// its start but not its end.
package figures

import (
	"math"
	"slices"
	"sort"
	"time"
)

// A Period is a stretch of time.
type Period struct{ From, To int64 }

func (p Period) seconds() float64 { return time.Duration(p.To - p.From).Seconds() }

// After returns the period without its first part, which lasts d.
func (p Period) After(d time.Duration) Period {
	return Period{From: min(p.From+int64(d), p.To), To: p.To}
}

// within returns the sorted times that lie in the period.
func (p Period) within(times []int64) []int64 {
	first := sort.Search(len(times), func(i int) bool { return times[i] >= p.From })
	last := sort.Search(len(times), func(i int) bool { return times[i] >= p.To })
	return times[first:max(first, last)]
}

// Count returns the number of times that lie in the period.
func Count(times []int64, p Period) int { return len(p.within(times)) }

// PerSecond returns the mean rate per second in the period.
func PerSecond(times []int64, p Period) float64 { return rate(len(p.within(times)), p.seconds()) }

// PerMinute returns the mean rate per minute in the period.
func PerMinute(times []int64, p Period) float64 { return 60 * PerSecond(times, p) }

func rate(count int, seconds float64) float64 {
	if seconds <= 0 {
		return math.NaN()
	}
	return float64(count) / seconds
}

// Peak returns the largest number of times within any one second of the
// period. The interval of one second may start at any time: if it always started at a full
// second, a burst could be cut in two by chance.
func Peak(times []int64, p Period) int {
	times = p.within(times)
	most, first := 0, 0
	for i, t := range times {
		for t-times[first] >= int64(time.Second) {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// Gaps returns, in seconds, how late each arrival in the period was. An arrival is due one
// interval after the previous arrival of the same subject, which may be before the period. For
// an early arrival, the value is 0. If the next arrival of a subject is overdue at the end of
// the period, Gaps adds the time by which it is overdue, so that a forgotten subject is
// noticed.
func Gaps(arrivals map[int32][]int64, interval time.Duration, p Period) []float64 {
	var late []float64
	add := func(before, at int64) {
		late = append(late, max(0, (time.Duration(at-before)-interval).Seconds()))
	}
	for _, times := range arrivals {
		for i := 1; i < len(times); i++ {
			if times[i] >= p.From && times[i] < p.To {
				add(times[i-1], times[i])
			}
		}
		before := Period{From: math.MinInt64, To: p.To}.within(times)
		last := p.From
		if len(before) > 0 {
			last = before[len(before)-1]
		}
		if time.Duration(p.To-last) > interval {
			add(last, p.To)
		}
	}
	return late
}

// Percentile returns the smallest value such that at least the given share of the values
// are less than or equal to it (the nearest rank). It returns NaN if there are no values.
// It sorts the slice in place.
func Percentile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	rank := int(math.Ceil(share * float64(len(values))))
	return values[min(max(rank, 1), len(values))-1]
}

// Median returns the middle value, or the mean of the two middle values, or
// NaN if there are no values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// A Level is a count, with the time at which the count changed to this value.
type Level struct {
	At    int64
	Count int
}

// Reached returns the time that passed, starting at from, until the count was at least
// want. It returns false if the count was never at least want. The levels must be in order.
func Reached(levels []Level, from int64, want int) (time.Duration, bool) {
	for i, l := range levels {
		holdsAfter := l.At >= from || i+1 == len(levels) || levels[i+1].At > from
		if holdsAfter && l.Count >= want {
			return max(0, time.Duration(l.At-from)), true
		}
	}
	return 0, false
}
