package figures

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const second = int64(time.Second)

// at converts tenths of a second to times.
func at(tenths ...int64) (times []int64) {
	for _, t := range tenths {
		times = append(times, t*second/10)
	}
	return times
}

func TestPeriodIncludesItsStartAndNotItsEnd(t *testing.T) {
	p := Period{From: 1 * second, To: 3 * second}
	if got := Count(at(9, 10, 20, 29, 30), p); got != 3 {
		t.Errorf("%d, want 3", got)
	}
	if got := Count(at(1, 2), p); got != 0 {
		t.Errorf("%d before the period, want 0", got)
	}
}

func TestRateIsTheCountOverTheLengthOfThePeriod(t *testing.T) {
	p := Period{From: 0, To: 4 * second}
	if got := PerSecond(at(0, 10, 39, 40), p); got != 0.75 {
		t.Errorf("%v a second, want 0.75", got)
	}
	if got := PerMinute(at(0, 10, 39, 40), p); got != 45 {
		t.Errorf("%v a minute, want 45", got)
	}
	if got := PerSecond(at(1), Period{}); !math.IsNaN(got) {
		t.Errorf("%v a second in an empty period, want NaN", got)
	}
}

func TestPeriodAfterADelayNeverEndsBeforeItStarts(t *testing.T) {
	p := Period{From: 0, To: 2 * second}
	if got, want := p.After(time.Second), (Period{From: second, To: 2 * second}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := p.After(time.Minute), (Period{From: 2 * second, To: 2 * second}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestPeakFindsABurstThatFixedSecondsWouldCutInTwo(t *testing.T) {
	p := Period{From: 0, To: 10 * second}
	for name, test := range map[string]struct {
		times []int64
		want  int
	}{
		"none":                         {nil, 0},
		"one":                          {at(50), 1},
		"across a second boundary":     {at(8, 9, 10, 11, 12), 5},
		"exactly a second is too long": {at(0, 10, 20), 1},
		"the second burst is the peak": {at(0, 1, 30, 31, 32, 60), 3},
		"times outside do not count":   {at(98, 99, 100, 101), 2},
	} {
		if got := Peak(test.times, p); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestGapsCountWhatIsLateAndWhatIsMissing(t *testing.T) {
	p := Period{From: 10 * second, To: 40 * second}
	for name, test := range map[string]struct {
		times []int64
		want  []float64
	}{
		"on time":                        {at(50, 150, 250, 350), []float64{0, 0, 0}},
		"early is not late":              {at(50, 140, 240, 340), []float64{0, 0, 0}},
		"late by two seconds":            {at(50, 170, 270, 370), []float64{2, 0, 0}},
		"never again":                    {at(50, 150), []float64{0, 15}},
		"never at all":                   {nil, []float64{20}},
		"ignored after the period":       {at(50, 150, 250, 350, 900), []float64{0, 0, 0}},
		"overdue at the end, seen later": {at(50, 150, 900), []float64{0, 15}},
	} {
		got := Gaps(map[int32][]int64{0: test.times}, 10*time.Second, p)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPercentileIsAValueThatOccurred(t *testing.T) {
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	for share, want := range map[float64]float64{0: 1, 0.5: 50, 0.99: 99, 0.991: 100, 1: 100} {
		if got := Percentile(hundred, share); got != want {
			t.Errorf("share %v: %v, want %v", share, got, want)
		}
	}
	if got := Percentile([]float64{7}, 0.99); got != 7 {
		t.Errorf("the percentile of one value is %v, want 7", got)
	}
	if got := Percentile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("of none: %v, want NaN", got)
	}
}

func TestMedianLeavesItsInputAlone(t *testing.T) {
	values := []float64{3, 1, 2, 10}
	if got := Median(values); got != 2.5 {
		t.Errorf("%v, want 2.5", got)
	}
	if got := Median(values[:3]); got != 2 {
		t.Errorf("%v, want 2", got)
	}
	if diff := cmp.Diff([]float64{3, 1, 2, 10}, values); diff != "" {
		t.Error("the values were sorted in place")
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("of none: %v, want NaN", got)
	}
}

func TestReachedIsTheFirstTimeAfterTheStart(t *testing.T) {
	levels := []Level{{At: 0, Count: 10}, {At: 5 * second, Count: 0}, {At: 20 * second, Count: 4}, {At: 30 * second, Count: 10}}
	for name, test := range map[string]struct {
		from int64
		want int
		is   time.Duration
		ok   bool
	}{
		"half":                          {10 * second, 4, 10 * time.Second, true},
		"all":                           {10 * second, 10, 20 * time.Second, true},
		"a count that is never reached": {10 * second, 11, 0, false},
		"reached before the start":      {2 * second, 10, 0, true},
		"an earlier level is ignored":   {5 * second, 5, 25 * time.Second, true},
		"after the last change":         {60 * second, 10, 0, true},
	} {
		if is, ok := Reached(levels, test.from, test.want); is != test.is || ok != test.ok {
			t.Errorf("%s: %v %v, want %v %v", name, is, ok, test.is, test.ok)
		}
	}
}

const exposition = `# TYPE lag_seconds histogram
lag_seconds_bucket{le="0.1"} %1
lag_seconds_bucket{le="1"} %2
lag_seconds_bucket{le="+Inf"} %3
lag_seconds_sum 12
lag_seconds_count %3
lag_seconds_other_bucket{le="1"} 1000
`

func histogram(t *testing.T, counts ...string) Histogram {
	t.Helper()
	text := strings.NewReplacer("%1", counts[0], "%2", counts[1], "%3", counts[2]).Replace(exposition)
	h, err := ReadHistogram(strings.NewReader(text), "lag_seconds")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHistogramCountsOnlyWhatCameSince(t *testing.T) {
	before := histogram(t, "0", "50", "50")
	after := histogram(t, "99", "150", "150")
	window := after.Since(before)
	for share, want := range map[float64]float64{0.5: 0.1, 0.99: 0.1, 1: 1} {
		if got := window.AtMost(share); got != want {
			t.Errorf("share %v: %v, want %v", share, got, want)
		}
	}
	if got := after.AtMost(0.99); got != 1 {
		t.Errorf("the bound since the start is %v, want 1", got)
	}
	if got := before.Since(before).AtMost(0.99); !math.IsNaN(got) {
		t.Errorf("the bound of no observations is %v, want NaN", got)
	}
}

func TestHistogramThatIsNotThereIsEmpty(t *testing.T) {
	h, err := ReadHistogram(strings.NewReader(exposition), "another")
	if err != nil || !math.IsNaN(h.AtMost(0.5)) {
		t.Errorf("%v, %v", h, err)
	}
}

func TestHistogramThatCannotBeReadIsAnError(t *testing.T) {
	if _, err := ReadHistogram(strings.NewReader(`x_bucket{le="many"} 1`), "x"); err == nil {
		t.Error("no error")
	}
}
