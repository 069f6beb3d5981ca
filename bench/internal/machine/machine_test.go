package machine

import (
	"testing"

	"github.com/koboshi-dev/koboshi/bench/internal/result"
)

func TestABusyMachineIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		load  float64
		cores int
		warn  bool
	}{{0.3, 2, false}, {2, 2, false}, {2.1, 2, true}, {2.1, 8, false}} {
		if got := Warning(result.Machine{Load: c.load, Cores: c.cores}); (got != "") != c.warn {
			t.Errorf("load %v on %d cores: %q", c.load, c.cores, got)
		}
	}
}

func TestATableOfProcIsReadByItsFirstMatchingKey(t *testing.T) {
	const table = "processor\t: 0\nmodel name\t: A CPU: the first\nmodel name\t: another\nMemTotal:       1024 kB\n"
	for key, want := range map[string]string{"model name": "A CPU: the first", "MemTotal": "1024 kB", "Mem": ""} {
		if got := value(table, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}
