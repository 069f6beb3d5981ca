package check

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
)

func TestAnIdleLabHelpsUntilNoOtherIsBusy(t *testing.T) {
	i, own, helper := newIdle(), &fleet.Worker{}, &fleet.Worker{}
	done := i.work()
	assisted := make(chan struct{})
	go func() { i.assist(t.Context(), helper); close(assisted) }()
	var helped atomic.Int32
	for helped.Load() == 0 && t.Context().Err() == nil { // the helper may not wait for an offer yet
		outs, err := i.together(t.Context(), own, 3, func(_ context.Context, w *fleet.Worker, k int) (*fleet.Outcome, error) {
			if w == helper {
				helped.Add(1)
			}
			return &fleet.Outcome{Inconclusive: string(rune('a' + k))}, nil
		})
		if err != nil || len(outs) == 0 || len(outs) > 3 {
			t.Fatalf("outcomes %v, %v", outs, err)
		}
		for k, out := range outs {
			if out.Inconclusive != string(rune('a'+k)) {
				t.Errorf("outcome %d is that of run %s", k, out.Inconclusive)
			}
		}
	}
	select {
	case <-assisted:
		t.Fatal("the helper stopped while another lab was busy")
	default:
	}
	done()
	<-assisted
}

func TestALabAloneMakesOneRunAtATime(t *testing.T) {
	outs, err := newIdle().together(t.Context(), &fleet.Worker{}, 2, func(context.Context, *fleet.Worker, int) (*fleet.Outcome, error) {
		return &fleet.Outcome{}, nil
	})
	if err != nil || len(outs) != 1 || outs[0] == nil {
		t.Errorf("outcomes %v, %v", outs, err)
	}
	_, err = newIdle().together(t.Context(), &fleet.Worker{}, 2, func(context.Context, *fleet.Worker, int) (*fleet.Outcome, error) {
		return nil, errBudget
	})
	if !errors.Is(err, errBudget) {
		t.Errorf("the error is %v", err)
	}
}

func TestTheEndOfABudgetIsKeptForConfirmation(t *testing.T) {
	s := newSuspicions(newOutcome(Options{}))
	if s.tooLate(time.Second, time.Minute, 2) {
		t.Error("before any run is known, no fault is run")
	}
	s.runs.add(20*time.Second, 2)
	for _, tt := range []struct {
		left, most time.Duration
		labs       int
		want       bool
	}{
		{29 * time.Second, time.Minute, 4, true},
		{31 * time.Second, time.Minute, 4, false},
		{31 * time.Second, time.Minute, 1, true},
		{31 * time.Second, 30 * time.Second, 1, false},
		{0, 0, 4, false},
	} {
		if got := s.tooLate(tt.left, tt.most, tt.labs); got != tt.want {
			t.Errorf("%s left, at most %s kept, %d labs: %t", tt.left, tt.most, tt.labs, got)
		}
	}
}

func TestNoFaultIsBegunWhoseFindingCouldNotBeConfirmed(t *testing.T) {
	program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) "+shows+" ;;")
	c := newCheck(Options{Program: program, Dir: t.TempDir(), Workers: 1, Budget: time.Hour, Scenarios: scenarios("life")})
	c.began = c.began.Add(-55 * time.Minute)
	c.suspicions.runs.add(time.Minute, 1) // so that a confirmation takes six minutes
	r := finish(t, c)
	if len(r.Tried) != 1 || len(r.LeftOut) != 1 || r.LeftOut[0].Why != "the budget was used up" || len(r.Inconclusive)+len(r.Findings) != 0 {
		t.Errorf("the report is %+v", r)
	}
}

func TestALessonThatTakesMuchLongerThanThoseBeforeItIsEnded(t *testing.T) {
	t.Parallel()
	program := shellLab(t, `*'"learn"'*'"slow"'*) cat >/dev/null; exit 0 ;;`+"\n"+learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;")
	result, err := Run(t.Context(), Options{Program: program, Dir: t.TempDir(), Workers: 1, Budget: 10 * time.Second, Scenarios: scenarios("life", "slow")})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if len(r.NotLearnt) != 1 || r.NotLearnt[0].Scenario != "slow" || r.NotLearnt[0].Why != whyEnough {
		t.Errorf("left out are %+v", r.NotLearnt)
	}
	if len(r.Tried) != 1 || r.Tried[0].Clean != 1 {
		t.Errorf("no fault was run after it: %+v", r.Tried)
	}
}
