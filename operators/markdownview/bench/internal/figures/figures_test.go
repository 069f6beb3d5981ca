package figures

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummaryHasTheMiddleAndTheEnds(t *testing.T) {
	for _, test := range []struct {
		all  []float64
		want Summary
	}{
		{[]float64{3}, Summary{Median: 3, Least: 3, Most: 3}},
		{[]float64{9, 1, 2}, Summary{Median: 2, Least: 1, Most: 9}},
		{[]float64{4, 1, 2, 9}, Summary{Median: 3, Least: 1, Most: 9}},
	} {
		test.want.All = test.all
		if diff := cmp.Diff(test.want, Summarize(test.all)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.all, diff)
		}
	}
}

func TestWhatIsNotKnownIsNotMet(t *testing.T) {
	for is, want := range map[float64]string{1: "met", 1.5: "met", 1.51: "MISSED", math.NaN(): "MISSED"} {
		if got := Verdict(is, 1.5); got != want {
			t.Errorf("%v: %s, want %s", is, got, want)
		}
	}
}
