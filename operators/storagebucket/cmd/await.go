package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
)

const (
	// awaitEach limits the time of one request.
	awaitEach = 5 * time.Second
	// awaitPause is the time between two requests.
	awaitPause = 500 * time.Millisecond
)

// runAwait waits for the StorageBucket that the flags name. The chart's test runs it,
// because the image contains no other client.
func runAwait(ctx context.Context, o options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	reader, err := client.New(config, client.Options{Scheme: newScheme()})
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	return await(ctx, reader, o.await, o.awaitLimit)
}

// await waits until a manager has worked on a StorageBucket, named as namespace/name.
// The object is read as v1alpha1, so that the conversion webhook has to answer as well.
func await(ctx context.Context, reader client.Reader, object string, limit time.Duration) error {
	namespace, name, ok := strings.Cut(object, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("--await=%s does not have the form NAMESPACE/NAME", object)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(awaitPause)
	defer tick.Stop()
	var last error
	for {
		err := workedOn(ctx, reader, types.NamespacedName{Namespace: namespace, Name: name})
		if err == nil {
			return nil
		}
		// If the time limit has cut this request short, its error does not explain why
		// the limit was reached.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("no manager reconciled StorageBucket %s within %s: %w", object, limit, last)
		}
	}
}

// workedOn returns nil if the status describes the current spec of the object.
func workedOn(ctx context.Context, reader client.Reader, key types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, awaitEach)
	defer cancel()
	var b storagev1alpha1.StorageBucket
	if err := reader.Get(ctx, key, &b); err != nil {
		return fmt.Errorf("reading the StorageBucket as v1alpha1: %w", err)
	}
	if b.Generation == 0 || b.Status.ObservedGeneration != b.Generation {
		return fmt.Errorf("the status is for generation %d, not %d", b.Status.ObservedGeneration, b.Generation)
	}
	return nil
}
