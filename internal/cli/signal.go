package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// A signalError is the cause of a context that a signal has canceled.
type signalError struct{ syscall.Signal }

func (e signalError) Error() string { return e.String() + " signal received" }

func (signalError) Is(target error) bool { return target == context.Canceled }

// UntilSignal returns a context that is canceled by the first signal that asks the program to end.
// A second signal has its usual effect, so that it ends a program that does not stop. The signals
// include SIGHUP, which a closing terminal sends, unless nohup makes the program ignore it.
func UntilSignal(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	arriving := make(chan os.Signal, 1)
	signal.Notify(arriving, all...)
	go func() {
		defer signal.Stop(arriving)
		select {
		case s := <-arriving:
			number, _ := s.(syscall.Signal)
			cancel(signalError{number})
		case <-ctx.Done():
		}
	}()
	return ctx
}

// interrupted returns the exit status of a program that ends because a signal has canceled ctx.
func interrupted(ctx context.Context) exitStatus {
	var cause signalError
	if errors.As(context.Cause(ctx), &cause) {
		return exitStatus(128 + int(cause.Signal))
	}
	return exitStatus(128 + int(syscall.SIGINT))
}
