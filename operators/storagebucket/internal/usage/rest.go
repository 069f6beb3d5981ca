// Package usage serves the aggregated API usage.storage.koboshi.dev: it counts the
// objects in buckets while the request waits, and keeps each count for a few
// minutes, because stores charge for listing.
//
//	kubectl ──▶ API server ──▶ usage server ──▶ StorageBucket, ObjectStore, Secret
//	             (aggregation)       │           (from the API server, uncached)
//	                                 └────────▶ the store
package usage

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	usagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/usage/v1"
	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

// page is the number of StorageBuckets that are read at a time. Without pages, a list
// of many StorageBuckets would need memory for all of them at once.
const page = 500

// Buckets implements the resource bucketusages, which supports only get and list.
type Buckets struct {
	reader   client.Reader
	measurer *Measurer
	// requests has one slot for each request that may count objects at the same time.
	requests chan struct{}
	// namespaces are the only namespaces that are served; an empty list means all.
	namespaces []string
}

// NewBuckets returns the resource, which serves at most maxRequests at the same time.
// If no namespaces are given, all are served.
func NewBuckets(reader client.Reader, measurer *Measurer, maxRequests int, namespaces ...string) *Buckets {
	return &Buckets{reader: reader, measurer: measurer, requests: make(chan struct{}, maxRequests), namespaces: namespaces}
}

var (
	_ rest.Storage              = (*Buckets)(nil)
	_ rest.Getter               = (*Buckets)(nil)
	_ rest.Lister               = (*Buckets)(nil)
	_ rest.Scoper               = (*Buckets)(nil)
	_ rest.SingularNameProvider = (*Buckets)(nil)
	_ rest.ShortNamesProvider   = (*Buckets)(nil)
)

// New implements rest.Storage.
func (*Buckets) New() runtime.Object { return &usagev1.BucketUsage{} }

// Destroy implements rest.Storage.
func (*Buckets) Destroy() {}

// NewList implements rest.Lister.
func (*Buckets) NewList() runtime.Object { return &usagev1.BucketUsageList{} }

// NamespaceScoped implements rest.Scoper.
func (*Buckets) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (*Buckets) GetSingularName() string { return "bucketusage" }

// ShortNames implements rest.ShortNamesProvider. The resource is intentionally not in
// the category storage: kubectl get storage should not count all objects.
func (*Buckets) ShortNames() []string { return []string{"bu"} }

// Get implements rest.Getter.
func (b *Buckets) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if err := b.answers(genericapirequest.NamespaceValue(ctx), name); err != nil {
		return nil, err
	}
	done, err := b.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	var bucket storagev1.StorageBucket
	key := types.NamespacedName{Namespace: genericapirequest.NamespaceValue(ctx), Name: name}
	if err := b.reader.Get(ctx, key, &bucket); apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(resource, name)
	} else if err != nil {
		return nil, readingError(err)
	}
	measured := b.measurer.Measure(ctx, []storagev1.StorageBucket{bucket})[0]
	if measured.Err != nil {
		return nil, statusOf(name, measured.Err)
	}
	usage := usageOf(&bucket, measured)
	return &usage, nil
}

// List implements rest.Lister. The selectors and the limit apply to the StorageBuckets.
// With a limit, the response is one page, with the token for the next page.
func (b *Buckets) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	done, err := b.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	namespace := genericapirequest.NamespaceValue(ctx)
	list := &usagev1.BucketUsageList{Items: []usagev1.BucketUsage{}}
	if namespace != "" || len(b.namespaces) == 0 {
		if err := b.answers(namespace, ""); err != nil {
			return nil, err
		}
		if err := b.list(ctx, queryOf(namespace, options), options.Limit > 0, list); err != nil {
			return nil, err
		}
		return list, nil
	}
	// The response is always complete, without pages: the server may only list namespace by
	// namespace, and no page token can continue from one namespace to the next.
	for _, namespace := range b.namespaces {
		query := queryOf(namespace, options)
		query.Limit, query.Continue = page, ""
		if err := b.list(ctx, query, false, list); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// answers returns an error for a namespace that is not served. An empty namespace, in a
// list of all namespaces, is not an error.
func (b *Buckets) answers(namespace, name string) error {
	if namespace == "" || within(b.namespaces, namespace) {
		return nil
	}
	return apierrors.NewForbidden(resource, name,
		fmt.Errorf("namespace %q is not among the usage server's --namespaces", namespace))
}

// within reports whether a namespace is in the list; an empty list means all.
func within(namespaces []string, namespace string) bool {
	return len(namespaces) == 0 || slices.Contains(namespaces, namespace)
}

// list adds the buckets of a query to the list: one page, or all of them.
func (b *Buckets) list(ctx context.Context, query *client.ListOptions, onePage bool, list *usagev1.BucketUsageList) error {
	for {
		var buckets storagev1.StorageBucketList
		if err := b.reader.List(ctx, &buckets, query); err != nil {
			return readingError(err)
		}
		for i, measured := range b.measurer.Measure(ctx, buckets.Items) {
			list.Items = append(list.Items, usageOf(&buckets.Items[i], measured))
		}
		query.Continue = buckets.Continue
		if buckets.Continue == "" || onePage {
			list.Continue = buckets.Continue
			list.RemainingItemCount = buckets.RemainingItemCount
			return nil
		}
	}
}

// begin refuses a request if too many are in progress. The refusal has a Retry-After
// header, because another request is likely to end soon. Clients obey the header.
func (b *Buckets) begin() (done func(), err error) {
	select {
	case b.requests <- struct{}{}:
		return func() { <-b.requests }, nil
	default:
		return nil, apierrors.NewTooManyRequests("too many requests are counting objects: try again later", 1)
	}
}

func queryOf(namespace string, options *metainternalversion.ListOptions) *client.ListOptions {
	query := &client.ListOptions{
		Namespace:     namespace,
		LabelSelector: options.LabelSelector,
		FieldSelector: options.FieldSelector,
		Limit:         page,
		Continue:      options.Continue,
	}
	if options.Limit > 0 {
		query.Limit = min(options.Limit, page)
	}
	return query
}

func usageOf(bucket *storagev1.StorageBucket, measured Measurement) usagev1.BucketUsage {
	usage := usagev1.BucketUsage{
		ObjectMeta: metav1.ObjectMeta{Namespace: bucket.Namespace, Name: bucket.Name, Labels: bucket.Labels},
		BucketName: bucket.BucketName(),
		Store:      storeName(bucket),
		MeasuredAt: metav1.NewTime(measured.At),
	}
	if err := measured.Err; err != nil {
		usage.Reason, usage.Message = string(s3store.ReasonOf(err)), err.Error()
		return usage
	}
	usage.Objects, usage.Bytes = &measured.Usage.Objects, &measured.Usage.Bytes
	usage.Truncated = measured.Usage.Truncated
	return usage
}
