package lab

import (
	"syscall"
	"time"
)

// Cost holds the amount of the machine's resources that a lab uses.
type Cost struct {
	// Busy is the number of processors that the plane and the controller together
	// kept busy in the last run without a fault; it may exceed 1.
	Busy float64 `json:"busy"`
	// Memory is the peak memory of the lab in bytes, without the controller.
	Memory int64 `json:"memory"`
}

// meter measures the cost of a run.
type meter struct {
	began time.Time
	spent time.Duration
}

func newMeter() meter { return meter{time.Now(), spent()} }

func (m meter) cost() Cost {
	return Cost{Busy: float64(spent()-m.spent) / float64(time.Since(m.began)), Memory: resident()}
}

// spent returns the processor time of this process and of its terminated children.
func spent() (total time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return total
}
