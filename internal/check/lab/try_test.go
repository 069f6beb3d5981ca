package lab

import (
	"testing"
	"time"
)

func TestAControllerAtWorkGetsMoreTimeToReact(t *testing.T) {
	const s = time.Second
	for name, of := range map[string]struct {
		waited, asked time.Duration
		polls         bool
		want          time.Duration
	}{
		"it has just begun":            {0, 5 * s, false, considerChange},
		"it is idle":                   {2 * s, 2 * s, false, considerChange - 2*s},
		"it is at work":                {2 * s, s / 10, false, stillWorking - s/10},
		"it has been at work for long": {14 * s, s / 5, false, stillWorking - s/5},
		"it never stops":               {15 * s, s / 10, false, considerChange - 15*s},
		"it has no watches, so its requests are polls": {2 * s, s / 10, true, considerChange - 2*s},
	} {
		if got := consider(considerChange, of.waited, of.asked, of.polls); got != of.want {
			t.Errorf("%s: %v, want %v", name, got, of.want)
		}
	}
}
