package stats

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestASpreadIsMinMedianAndMax(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   Spread
	}{
		{"nothing", nil, Spread{}},
		{"one", []float64{3}, Spread{1, 3, 3, 3}},
		{"odd, unsorted", []float64{9, 1, 4}, Spread{3, 1, 4, 9}},
		{"even: halfway", []float64{8, 1, 2, 4}, Spread{4, 1, 3, 8}},
		{"an outlier leaves the median alone", []float64{2, 2, 2, 2, 1000}, Spread{5, 2, 2, 1000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.values)
			if diff := cmp.Diff(c.want, Of(c.values)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, c.values); diff != "" {
				t.Errorf("the caller's values were rearranged; rounds would no longer match:\n%s", diff)
			}
		})
	}
}

func TestAPercentileIsAValueThatWasMeasured(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[len(hundred)-1-i] = float64(i + 1)
	}
	for _, c := range []struct {
		values []float64
		p      float64
		want   float64
	}{
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 100, 100},
		{hundred, 0, 1},
		{[]float64{7}, 99, 7},
		{[]float64{1, 2}, 50, 1},
		{[]float64{1, 2}, 51, 2},
	} {
		if got := Percentile(c.values, c.p); got != c.want {
			t.Errorf("p%v of %d values is %v, want %v", c.p, len(c.values), got, c.want)
		}
	}
	if got := Percentile(nil, 50); !math.IsNaN(got) {
		t.Errorf("p50 of no values is %v, want NaN", got)
	}
}
