package poll

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPollTellsTheCauseAndTheLastError(t *testing.T) {
	t.Parallel()
	refused, fell := errors.New("connection refused"), errors.New("etcd fell over")
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := 0
	err := Poll{}.Until(ctx, "/readyz", func(context.Context) (bool, error) {
		if asked++; asked == 3 {
			cancel(fell)
		}
		return false, refused
	})
	if !errors.Is(err, refused) || !errors.Is(err, fell) || !strings.Contains(err.Error(), "/readyz") {
		t.Errorf("%v, want both %v and %v, and what it waited for", err, fell, refused)
	}
}

func TestPollEndsWithTheFirstYes(t *testing.T) {
	t.Parallel()
	asked := 0
	err := Poll{}.Until(t.Context(), "x", func(context.Context) (bool, error) {
		asked++
		switch asked {
		case 1:
			return true, errors.New("an error is no yes")
		case 2:
			return false, nil
		}
		return true, nil
	})
	if err != nil || asked != 3 {
		t.Errorf("%v after %d questions, want no error after 3", err, asked)
	}
}

func TestAPauseFollowsAQuestionHoweverLongItTook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var asked []time.Duration
		err := Poll{Interval: 2 * time.Second}.Until(t.Context(), "the nodes", func(context.Context) (bool, error) {
			asked = append(asked, time.Since(began))
			<-time.After(5 * time.Second)
			return len(asked) == 3, nil
		})
		if want := []time.Duration{0, 7 * time.Second, 14 * time.Second}; err != nil || !slices.Equal(asked, want) {
			t.Errorf("%v, asked after %v, want %v", err, asked, want)
		}
	})
}

func TestALongWaitIsReportedWithItsLastError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []string
		p := Poll{Interval: time.Second, Waiting: func(what string) { told = append(told, what) }}
		ctx, cancel := context.WithTimeout(t.Context(), 3*reportInterval-time.Second)
		defer cancel()
		if err := p.Until(ctx, "the nodes", func(context.Context) (bool, error) { return false, errors.New("connection refused") }); err == nil {
			t.Error("no error, though the answer was never yes")
		}
		if want := []string{"the nodes (connection refused)", "the nodes (connection refused)"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		told = nil
		if err := p.Until(t.Context(), "the nodes", func(context.Context) (bool, error) { return true, nil }); err != nil || told != nil {
			t.Errorf("%v, told %q; want nothing", err, told)
		}
	})
}
