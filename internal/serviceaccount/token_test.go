package serviceaccount

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// appearsAfter returns a request that fails a number of times because the account is missing.
func appearsAfter(failures int) (func(context.Context) error, *int) {
	calls := new(int)
	return func(context.Context) error {
		*calls++
		if *calls <= failures {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, "default")
		}
		return nil
	}, calls
}

func TestTheDefaultAccountOfANewNamespaceIsAwaited(t *testing.T) {
	request, calls := appearsAfter(3)
	if err := whenCreated(t.Context(), "default", request); err != nil {
		t.Errorf("got %v although the account appeared", err)
	}
	if *calls != 4 {
		t.Errorf("got %d requests, want 4", *calls)
	}
}

func TestAnAccountOfTheInstallationIsNotAwaited(t *testing.T) {
	request, calls := appearsAfter(3)
	if err := whenCreated(t.Context(), "manager", request); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want that the account does not exist", err)
	}
	if *calls != 1 {
		t.Errorf("got %d requests, want 1", *calls)
	}
}

func TestACancelledWaitForTheDefaultAccountEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	request, calls := appearsAfter(1 << 30)
	err := whenCreated(ctx, "default", func(ctx context.Context) error {
		if *calls == 2 {
			cancel()
		}
		return request(ctx)
	})
	if !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want the last error of the request", err)
	}
}
