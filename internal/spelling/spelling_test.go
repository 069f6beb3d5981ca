package spelling

import "testing"

func TestDistanceCountsInsertionsDeletionsAndReplacements(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"same", "same", 0},
		{"deploymnt", "deployment", 1},
		{"deploymentt", "deployment", 1},
		{"deploynent", "deployment", 1},
		{"kitten", "sitting", 3},
		{"ab", "ba", 2}, // a swap is two changes
		{"abc", "xyz", 3},
	} {
		if got := Distance(test.a, test.b); got != test.want {
			t.Errorf("from %q to %q: %d, want %d", test.a, test.b, got, test.want)
		}
		if got := Distance(test.b, test.a); got != test.want {
			t.Errorf("from %q to %q: %d, want %d", test.b, test.a, got, test.want)
		}
	}
}
