package fleet

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/lab"
)

func TestLabsAreAsManyAsProcessorsAndMemoryAllow(t *testing.T) {
	const gigabyte = 1 << 30
	small := lab.Cost{Busy: 0.1, Memory: gigabyte / 4}
	for name, c := range map[string]struct {
		processors int
		cost       lab.Cost
		memory     int64
		work       int
		want       int
	}{
		"a cheap run":                    {2, small, 16 * gigabyte, 20, 8},
		"a run that costs twice as much": {2, lab.Cost{Busy: 0.2, Memory: gigabyte / 4}, 16 * gigabyte, 20, 5},
		"an expensive run":               {2, lab.Cost{Busy: 0.9}, 16 * gigabyte, 20, 2},
		"little memory":                  {2, small, gigabyte, 20, 2},
		"memory for six":                 {2, small, 3 * gigabyte, 20, 6},
		"unknown memory        ":         {2, small, 0, 20, 8},
		"little to do":                   {2, small, 16 * gigabyte, 3, 3},
		"nothing to do":                  {2, small, 16 * gigabyte, 0, 2},
		"an unknown cost       ":         {2, lab.Cost{}, 16 * gigabyte, 20, 2},
		"many processors":                {128, small, 640 * gigabyte, 200, 64},
		"before anything is known":       {128, lab.Cost{}, 0, 0, 64},
	} {
		if got := size(c.processors, c.cost, c.memory, c.work, 8192); got != c.want {
			t.Errorf("%s: %d labs, want %d", name, got, c.want)
		}
	}
}

func TestMoreLabsAreAddedOnlyWhereTheirManagersCanWatchTheirFiles(t *testing.T) {
	for _, c := range []struct{ processors, watchers, want int }{
		{2, 0, 8}, {2, 10, 2}, {2, 128, 12}, {2, 8192, 16}, {8, 128, 12}, {8, 8192, 64},
	} {
		if got := most(c.processors, lab.Cost{}, 0, 100, c.watchers); got != c.want {
			t.Errorf("%d processors and %d inotify instances: at most %d labs, want %d", c.processors, c.watchers, got, c.want)
		}
	}
}

func TestAvailableMemoryIsReadInBytes(t *testing.T) {
	const text = "MemTotal:       24000000 kB\nMemFree:         1000000 kB\nMemAvailable:   20000000 kB\n"
	if got := available(strings.NewReader(text)); got != 20000000<<10 {
		t.Errorf("%d", got)
	}
	if got := available(strings.NewReader("nothing")); got != 0 {
		t.Errorf("without MemAvailable: %d", got)
	}
}
