// Package fleet declares the buckets of a run and watches what an operator
// writes to them. It counts the changes that the API server reports, and ignores what
// an operator reports about itself.
package fleet

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	v1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/bench/internal/countstore"
)

const (
	namespace = "bench"
	storeName = "store"
	// creators is the number of objects that are created at the same time.
	creators = 16
)

// Fleet is a set of StorageBuckets in one ObjectStore.
type Fleet struct {
	// Kubeconfig is the kubeconfig file for the API server.
	Kubeconfig string
	// CRDs is the folder with the CRDs.
	CRDs string
	// Endpoint is the endpoint of the store.
	Endpoint string
	// Buckets is the number of buckets.
	Buckets int
	// Interval is the time between two probes of each bucket.
	Interval time.Duration

	client client.WithWatch
}

// Declare creates all objects.
func (f *Fleet) Declare(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1 // the API server's own limits are enough
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths: []string{f.CRDs}, ErrorIfPathMissing: true,
	}); err != nil {
		return fmt.Errorf("installing the CRDs: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("registering types: %w", err)
		}
	}
	if f.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	for _, object := range f.shared() {
		if err := f.client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return f.createBuckets(ctx)
}

// shared returns the objects that all buckets share.
func (f *Fleet) shared() []client.Object {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Secret{
			ObjectMeta: meta("keys"),
			StringData: map[string]string{v1.AccessKeyIDKey: "bench", v1.SecretAccessKeyKey: "not-a-secret"},
		},
		&v1.ObjectStore{
			ObjectMeta: meta(storeName),
			Spec: v1.ObjectStoreSpec{
				Endpoint:    f.Endpoint,
				Credentials: v1.Credentials{SecretRef: &v1.SecretReference{Name: "keys"}},
			},
		},
	}
}

func (f *Fleet) bucket(index int) *v1.StorageBucket {
	return &v1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: countstore.BucketName(index)},
		Spec: v1.StorageBucketSpec{
			StoreRef: &v1.ObjectStoreReference{Name: storeName},
			Probe:    v1.ProbeSpec{Interval: metav1.Duration{Duration: f.Interval}},
		},
	}
}

// createBuckets creates all buckets, and stops at the first error.
func (f *Fleet) createBuckets(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		next    atomic.Int64
		workers sync.WaitGroup
	)
	for range creators {
		workers.Go(func() {
			for ctx.Err() == nil {
				index := int(next.Add(1)) - 1
				if index >= f.Buckets {
					return
				}
				if err := f.client.Create(ctx, f.bucket(index)); err != nil {
					cancel(fmt.Errorf("creating bucket %d: %w", index, err))
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}
