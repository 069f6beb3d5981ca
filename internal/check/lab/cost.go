package lab

import (
	"syscall"
	"time"
)

// Cost is what a lab needs of the machine.
type Cost struct {
	// Busy is how much of one processor the last run without a fault kept busy, the
	// plane and the controller together, from 0 up.
	Busy float64 `json:"busy"`
	// Memory is the most that the lab has held so far, the controller not counted,
	// in bytes.
	Memory int64 `json:"memory"`
}

// meter measures what a run costs.
type meter struct {
	began time.Time
	spent time.Duration
}

func newMeter() meter { return meter{time.Now(), spent()} }

func (m meter) cost() Cost {
	return Cost{Busy: float64(spent()-m.spent) / float64(time.Since(m.began)), Memory: resident()}
}

// spent is the time that this process and the children that have ended kept
// processors busy.
func spent() (total time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return total
}
