package controlplane

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheFirstFailureIsTheCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := errors.New("first"), errors.New("second")
		ts := newTasks(t.Context())
		ts.run(func(ctx context.Context) error {
			<-ctx.Done() // fails because the other task failed
			return second
		})
		ts.run(func(context.Context) error {
			<-time.After(time.Second)
			return first
		})
		ts.run(func(context.Context) error { return nil })
		<-ts.ctx.Done()
		synctest.Wait()
		if got := context.Cause(ts.ctx); !errors.Is(got, first) {
			t.Errorf("cause %v, want %v", got, first)
		}
		if got := ts.stop(); !errors.Is(got, first) {
			t.Errorf("stop: %v, want %v", got, first)
		}
	})
}

func TestStoppedTasksHaveNotFailed(t *testing.T) {
	t.Parallel()
	ts := newTasks(t.Context())
	ts.run(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	for range 2 {
		if err := ts.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
}

func TestStopWaitsForTasksButNotForEver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ needs, want time.Duration }{
		"at once": {0, 0},
		"a while": {stopTimeout / 3, stopTimeout / 3},
		"a day":   {24 * time.Hour, stopTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ts := newTasks(t.Context())
				ts.run(func(ctx context.Context) error {
					<-ctx.Done()
					<-time.After(test.needs)
					return nil
				})
				begun := time.Now()
				if err := ts.stop(); err != nil {
					t.Errorf("stop: %v", err)
				}
				if took := time.Since(begun); took != test.want {
					t.Errorf("stop took %v, want %v", took, test.want)
				}
				<-time.After(test.needs) // all goroutines must end before the synctest bubble ends
				synctest.Wait()
			})
		})
	}
}
