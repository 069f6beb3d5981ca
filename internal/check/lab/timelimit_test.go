package lab

import (
	"testing"
	"time"
)

func TestAStepThatRunsJobsInSequenceGetsItsTimeForEachButNotForEver(t *testing.T) {
	began := time.Now()
	after := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	p := newTimeLimit(began, 10*time.Minute)
	for i := range mostGenerations {
		now := after(9 * (i + 1))
		if now.After(p.deadline) {
			t.Fatalf("the time is over before Job %d has ended", i+1)
		}
		p.jobsEnded(now)
	}
	last := p.deadline
	if want := after(9*mostGenerations + 10); last != want {
		t.Errorf("after the last Job, the deadline is %s, want %s", last, want)
	}
	if p.jobsEnded(last); p.deadline != last {
		t.Error("a controller that makes Jobs without end never comes to its deadline")
	}
}

func TestAStepThatCreatesObjectsInSequenceGetsItsTimeForEachButNotForEver(t *testing.T) {
	began := time.Now()
	p := newTimeLimit(began, time.Minute)
	if p.grow(time.Time{}); p.deadline != began.Add(time.Minute) {
		t.Errorf("without a new object, the deadline is %s", p.deadline.Sub(began))
	}
	if p.grow(began.Add(50 * time.Second)); p.deadline != began.Add(110*time.Second) {
		t.Errorf("after a new object, the deadline is %s", p.deadline.Sub(began))
	}
	for i := range 10 {
		p.grow(began.Add(time.Duration(i) * 50 * time.Second))
	}
	if p.deadline != began.Add(mostGrowth*time.Minute) {
		t.Errorf("with objects without end, the deadline is %s", p.deadline.Sub(began))
	}
}

func TestAPauseNeverShortensTheTimeOfAStep(t *testing.T) {
	began := time.Now()
	p := newTimeLimit(began, time.Minute)
	p.excuse(began, time.Hour)
	excused := p.deadline
	if p.extend(began, time.Minute); p.deadline != excused {
		t.Errorf("the deadline is %s earlier", excused.Sub(p.deadline))
	}
	if p.extend(excused, time.Minute); p.deadline != excused.Add(2*time.Minute) {
		t.Errorf("after a pause of a minute, the controller has %s", p.deadline.Sub(excused))
	}
}

func TestThePatienceOfARunIsNotCutByTheLimitOfAStep(t *testing.T) {
	began := time.Now()
	late := began.Add(9 * time.Second) // after the limit
	for name, of := range map[string]struct {
		left    time.Duration
		patient bool
		want    bool
	}{
		"patient, and it may still react":  {20 * time.Second, true, true},
		"patient, and it has had its time": {0, true, false},
		"impatient":                        {20 * time.Second, false, false},
	} {
		p := newTimeLimit(began, 8*time.Second)
		if got := p.allows(late, of.left, of.patient); got != of.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	p := newTimeLimit(began, 8*time.Second)
	if !p.allows(began, time.Second, false) {
		t.Error("before the limit, no time is left either")
	}
}
