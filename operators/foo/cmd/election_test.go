package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheManagerStopsWhenItsWorkersHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const busy = shutdownTimeout - time.Second
		started := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		err := work(ctx, func(context.Context) error { <-time.After(busy); return nil })
		if took := time.Since(started); err != nil || took != busy {
			t.Errorf("%v after %s, want no error after %s", err, took, busy)
		}
	})
}

func TestAWorkerThatDoesNotEndDelaysTheManagerOnlyUntilTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		stuck := make(chan error)
		defer close(stuck)
		err := work(ctx, func(context.Context) error { return <-stuck })
		if took := time.Since(started); err == nil || took != shutdownTimeout {
			t.Errorf("%v after %s, want an error after %s", err, took, shutdownTimeout)
		}
	})
}
