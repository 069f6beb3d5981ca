package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// reconciler sends a request for the bucket to the store on every call, and records the
// result in the status.
type reconciler struct {
	client.Client
	timeout time.Duration

	mu      sync.Mutex
	clients map[string]*s3.Client
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var bucket v1.StorageBucket
	if err := r.Get(ctx, req.NamespacedName, &bucket); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	store, err := r.store(ctx, &bucket)
	if err != nil {
		return ctrl.Result{}, err
	}
	probing, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	start := time.Now()
	_, err = store.HeadBucket(probing, &s3.HeadBucketInput{Bucket: aws.String(bucket.BucketName())})
	record(&bucket, err, time.Since(start))
	if err := r.Status().Update(ctx, &bucket); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status: %w", err)
	}
	return ctrl.Result{}, nil
}

func record(bucket *v1.StorageBucket, failure error, latency time.Duration) {
	condition := metav1.Condition{
		Type:               v1.ConditionHealthy,
		Status:             metav1.ConditionTrue,
		Reason:             "ProbeSucceeded",
		Message:            "the store answered",
		ObservedGeneration: bucket.Generation,
	}
	if failure != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "ProbeFailed", "the store did not answer"
	}
	meta.SetStatusCondition(&bucket.Status.Conditions, condition)
	bucket.Status.ObservedGeneration = bucket.Generation
	bucket.Status.Probe = &v1.ProbeStatus{
		Reason:              condition.Reason,
		LastProbeTime:       new(metav1.NowMicro()),
		LatencyMilliseconds: new(max(1, latency.Milliseconds())),
	}
}

// store returns the client for the bucket's ObjectStore. There is one client for each
// version of the ObjectStore and its Secret.
func (r *reconciler) store(ctx context.Context, bucket *v1.StorageBucket) (*s3.Client, error) {
	namespace, name := bucket.StoreKey()
	var store v1.ObjectStore
	if err := r.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &store); err != nil {
		return nil, fmt.Errorf("reading the ObjectStore: %w", err)
	}
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: namespace, Name: store.Spec.Credentials.SecretRef.Name}
	if err := r.Get(ctx, key, &secret); err != nil {
		return nil, fmt.Errorf("reading the Secret: %w", err)
	}
	version := string(store.UID) + "/" + store.ResourceVersion + "/" + secret.ResourceVersion
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clients[version] == nil {
		r.clients = map[string]*s3.Client{version: newClient(&store, &secret)}
	}
	return r.clients[version], nil
}

func newClient(store *v1.ObjectStore, secret *corev1.Secret) *s3.Client {
	keys := aws.Credentials{
		AccessKeyID:     string(secret.Data[v1.AccessKeyIDKey]),
		SecretAccessKey: string(secret.Data[v1.SecretAccessKeyKey]),
	}
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(store.Spec.Endpoint),
		Region:       store.Spec.Region,
		UsePathStyle: true,
		Credentials:  aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil }),
	})
}
