package usage

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	usagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/usage/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

var resource = schema.GroupResource{Group: usagev1.GroupVersion.Group, Resource: "bucketusages"}

// statusOf converts an error to the response to a request for one bucket. The response
// is the API status that fits the error best, with the error's reason in
// details.causes.
//
// No response has a Retry-After header, because clients would obey the header silently, but
// a person who uses kubectl wants to see the reason.
func statusOf(name string, err error) error {
	var known *s3store.Error
	if !errors.As(err, &known) {
		return apierrors.NewInternalError(errors.New("the bucket could not be counted: see the log of the usage server"))
	}
	var status *apierrors.StatusError
	switch known.Reason {
	case s3store.ReasonAccessDenied, s3store.ReasonInvalidCredentials, s3store.ReasonEndpointForbidden, ReasonStoreNotAllowed:
		status = apierrors.NewForbidden(resource, name, errors.New(known.Message))
	case s3store.ReasonTimeout:
		status = apierrors.NewTimeoutError(known.Message, 0)
	case s3store.ReasonThrottled:
		status = apierrors.NewTooManyRequestsError(known.Message)
	case ReasonInternalError:
		status = apierrors.NewInternalError(errors.New(known.Message))
	default:
		status = apierrors.NewServiceUnavailable(known.Message)
	}
	status.ErrStatus.Details = &metav1.StatusDetails{
		Group: resource.Group, Kind: resource.Resource, Name: name,
		Causes: []metav1.StatusCause{{Type: metav1.CauseType(known.Reason), Message: known.Message}},
	}
	return status
}

// readingError returns the response if the StorageBuckets cannot be read. An error that the
// client can fix is returned unchanged. Other errors, for example about this program's own
// rights, are logged and not shown.
func readingError(err error) error {
	switch {
	case apierrors.IsBadRequest(err), apierrors.IsInvalid(err), apierrors.IsResourceExpired(err), apierrors.IsTooManyRequests(err):
		return err
	case apierrors.IsNotFound(err):
		return apierrors.NewServiceUnavailable("the cluster has no StorageBuckets: install their CustomResourceDefinition")
	}
	klog.ErrorS(err, "Reading StorageBuckets")
	return apierrors.NewServiceUnavailable("StorageBuckets could not be read: see the log of the usage server")
}
