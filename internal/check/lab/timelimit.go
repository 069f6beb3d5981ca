package lab

import "time"

// mostGenerations is the maximum number of successive Jobs for which a step gets more time. Each of
// these Jobs is created after the previous Job has ended.
const mostGenerations = 20

// mostGrowth limits the time of a step, in timeouts, for a controller that keeps creating objects.
const mostGrowth = 3

// timeLimit is the time that a step has to come to rest.
type timeLimit struct {
	began       time.Time
	timeout     time.Duration
	deadline    time.Time
	generations int // of Jobs
}

func newTimeLimit(began time.Time, timeout time.Duration) timeLimit {
	return timeLimit{began: began, timeout: timeout, deadline: began.Add(timeout)}
}

// excuse starts the timeout again, after a time for which the controller is not responsible.
func (l *timeLimit) excuse(now time.Time, excused time.Duration) {
	l.deadline = now.Add(excused + l.timeout)
}

// extend grants the whole timeout again after a pause, but never shortens the time that is left.
func (l *timeLimit) extend(now time.Time, pause time.Duration) {
	if until := now.Add(pause + l.timeout); until.After(l.deadline) {
		l.deadline = until
	}
}

// allows reports whether a controller that may still react gets the time that is left for it. A patient run extends the limit.
func (l *timeLimit) allows(now time.Time, left time.Duration, patient bool) bool {
	if left > 0 && patient {
		l.extend(now, left)
	}
	return left > 0 && now.Before(l.deadline)
}

// grow starts the timeout again when an object has been created: a controller that creates its objects one
// after the other makes progress, even if it takes long. A controller that creates objects without end
// gets at most mostGrowth timeouts.
func (l *timeLimit) grow(created time.Time) {
	until := created.Add(l.timeout)
	if most := l.began.Add(mostGrowth * l.timeout); until.After(most) {
		until = most
	}
	if until.After(l.deadline) {
		l.deadline = until
	}
}

// jobsEnded grants the whole timeout once more, because a controller that runs Jobs in sequence
// begins its next part only now. A controller that makes Jobs without end gets no more time after
// mostGenerations.
func (l *timeLimit) jobsEnded(now time.Time) {
	if l.generations++; l.generations <= mostGenerations {
		l.extend(now, 0)
	}
}
