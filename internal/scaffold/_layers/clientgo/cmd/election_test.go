/*
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
