package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
)

func TestACommandThatASignalPreventsHasTheStatusOfTheSignal(t *testing.T) {
	for s, want := range map[syscall.Signal]exitStatus{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		ctx := UntilSignal(t.Context())
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		if got := interrupted(ctx); got != want || !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("after %v, the exit status is %d, and the cause %v", s, got, context.Cause(ctx))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := interrupted(ctx); got != 130 {
		t.Errorf("without a signal, the exit status is %d", got)
	}
}
