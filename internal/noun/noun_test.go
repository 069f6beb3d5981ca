package noun

import "testing"

func TestOnlyOneIsSingular(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 runs", 1: "1 run", 2: "2 runs", -1: "-1 runs"} {
		if got := Count(n, "run"); got != want {
			t.Errorf("Count(%d) is %q, want %q", n, got, want)
		}
	}
}
