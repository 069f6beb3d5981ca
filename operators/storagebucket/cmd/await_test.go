package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
)

// answers is a client.Reader that gives its answers in order, and repeats the last one.
type answers struct {
	client.Reader
	asked int
	all   []answer
}

func (a *answers) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if key != (types.NamespacedName{Namespace: "team-a", Name: "b"}) {
		return errors.New("another object")
	}
	next := a.all[min(a.asked, len(a.all)-1)]
	a.asked++
	return next(ctx, into.(*storagev1alpha1.StorageBucket))
}

// answer fills in the object that is read, or returns an error.
type answer func(context.Context, *storagev1alpha1.StorageBucket) error

func observed(generation, observed int64) answer {
	return func(_ context.Context, b *storagev1alpha1.StorageBucket) error {
		b.Generation, b.Status.ObservedGeneration = generation, observed
		return nil
	}
}

func unavailable(context.Context, *storagev1alpha1.StorageBucket) error {
	return errors.New("conversion webhook: refused")
}

func hang(ctx context.Context, _ *storagev1alpha1.StorageBucket) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAwaitEndsWhenTheManagerHasWorkedOnTheObject(t *testing.T) {
	for name, tc := range map[string]struct {
		all   []answer
		limit time.Duration
		asked int
		want  string
	}{
		"at once":                  {[]answer{observed(1, 1)}, time.Minute, 1, ""},
		"after a failure":          {[]answer{unavailable, observed(1, 0), observed(1, 1)}, time.Minute, 3, ""},
		"the webhook is down":      {[]answer{unavailable}, 10 * time.Millisecond, 1, "conversion webhook: refused"},
		"the last request is cut":  {[]answer{unavailable, hang}, 700 * time.Millisecond, 2, "conversion webhook: refused"},
		"no manager reconciles it": {[]answer{observed(1, 0)}, 10 * time.Millisecond, 1, "the status is for generation 0, not 1"},
		"the status is too old":    {[]answer{observed(2, 1)}, 10 * time.Millisecond, 1, "the status is for generation 1, not 2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reader := &answers{all: tc.all}
				err := await(t.Context(), reader, "team-a/b", tc.limit)
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("error %v, want one with %q", err, tc.want)
				}
				if err != nil && !strings.Contains(err.Error(), "StorageBucket team-a/b") {
					t.Errorf("error %v does not name the object", err)
				}
				if reader.asked != tc.asked {
					t.Errorf("it asked %d times, want %d", reader.asked, tc.asked)
				}
			})
		})
	}
}

func TestAwaitWantsANamespaceAndAName(t *testing.T) {
	for _, name := range []string{"b", "/b", "team-a/", "a/b/c"} {
		if err := await(t.Context(), &answers{}, name, time.Minute); err == nil || !strings.Contains(err.Error(), "--await") {
			t.Errorf("--await=%s: error %v", name, err)
		}
	}
}
