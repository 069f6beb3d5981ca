package v1alpha1

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// Every field of one version has a counterpart in the other, so a conversion keeps
// everything and cannot fail. If an object could not be converted, it could be neither
// read nor repaired, and a list that contains it could not be read either.
//
// Before the API server converts an object, it sets the defaults of the version
// in which the object arrives. The API server validates a request by the rules
// of the request's version. Therefore, v1 and v1alpha1 have the same defaults
// and the same rules, except for the interval between probes.

// An unset interval has a different default in each version. Objects from an API server
// always have the interval set; these constants are for programs that convert objects
// in Go.
const (
	defaultInterval   = 30 * time.Second
	defaultIntervalV1 = time.Minute
)

// ConvertTo writes b into a v1.StorageBucket.
func (b *StorageBucket) ConvertTo(hub conversion.Hub) error {
	dst, ok := hub.(*storagev1.StorageBucket)
	if !ok {
		return fmt.Errorf("converting a v1alpha1 StorageBucket: %T is not a v1 StorageBucket", hub)
	}
	src := b.DeepCopy()
	dst.ObjectMeta = src.ObjectMeta
	dst.Spec = specToV1(&src.Spec)
	dst.Status = statusToV1(&src.Status)
	if src.Annotations[AnnotationBucketFromName] == "true" {
		// A bucket name that differs from the object's name was set on purpose, and
		// is kept.
		if src.Spec.Bucket == src.Name {
			dst.Spec.BucketName = ""
		}
		delete(dst.Annotations, AnnotationBucketFromName)
	}
	return nil
}

// ConvertFrom writes a v1.StorageBucket into b.
func (b *StorageBucket) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*storagev1.StorageBucket)
	if !ok {
		return fmt.Errorf("converting to a v1alpha1 StorageBucket: %T is not a v1 StorageBucket", hub)
	}
	src := from.DeepCopy()
	b.ObjectMeta = src.ObjectMeta
	b.Spec = specFromV1(&src.Spec)
	b.Status = statusFromV1(&src.Status)
	if b.Spec.Bucket == "" && b.Name != "" {
		b.Spec.Bucket = b.Name
		if b.Annotations == nil {
			b.Annotations = map[string]string{}
		}
		b.Annotations[AnnotationBucketFromName] = "true"
	}
	return nil
}

// specToV1 converts a spec. The results of this function and of the conversion
// functions below share pointers, slices and maps with the argument.
func specToV1(s *StorageBucketSpec) storagev1.StorageBucketSpec {
	spec := storagev1.StorageBucketSpec{
		BucketName:     s.Bucket,
		StoreRef:       s.StoreRef,
		Management:     s.Management,
		DeletionPolicy: s.DeletionPolicy,
		ForceEmpty:     s.ForceEmpty,
		Suspend:        s.Suspend,
		Probe: storagev1.ProbeSpec{
			Method:           s.Probe.Method,
			Interval:         s.ProbeInterval,
			Timeout:          s.Probe.Timeout,
			FailureThreshold: s.Probe.FailureThreshold,
			SuccessThreshold: s.Probe.SuccessThreshold,
		},
		DriftInterval:     s.DriftInterval,
		Versioning:        s.Versioning,
		Tags:              s.Tags,
		Lifecycle:         s.Lifecycle,
		Policy:            s.Policy,
		CORS:              s.CORS,
		Encryption:        s.Encryption,
		PublicAccessBlock: s.PublicAccessBlock,
		ObjectLock:        s.ObjectLock,
	}
	if spec.Probe.Interval.Duration == 0 {
		spec.Probe.Interval.Duration = defaultInterval
	}
	store := storagev1.InlineStore{
		Endpoint:             s.Endpoint,
		Region:               s.Region,
		CredentialsSecretRef: storagev1.SecretReference(s.CredentialsSecretRef),
	}
	if store != (storagev1.InlineStore{}) {
		spec.Store = &store
	}
	return spec
}

func specFromV1(s *storagev1.StorageBucketSpec) StorageBucketSpec {
	spec := StorageBucketSpec{
		Bucket:         s.BucketName,
		StoreRef:       s.StoreRef,
		ProbeInterval:  s.Probe.Interval,
		Management:     s.Management,
		DeletionPolicy: s.DeletionPolicy,
		ForceEmpty:     s.ForceEmpty,
		Suspend:        s.Suspend,
		Probe: ProbeSpec{
			Method:           s.Probe.Method,
			Timeout:          s.Probe.Timeout,
			FailureThreshold: s.Probe.FailureThreshold,
			SuccessThreshold: s.Probe.SuccessThreshold,
		},
		DriftInterval:     s.DriftInterval,
		Versioning:        s.Versioning,
		Tags:              s.Tags,
		Lifecycle:         s.Lifecycle,
		Policy:            s.Policy,
		CORS:              s.CORS,
		Encryption:        s.Encryption,
		PublicAccessBlock: s.PublicAccessBlock,
		ObjectLock:        s.ObjectLock,
	}
	if spec.ProbeInterval.Duration == 0 {
		spec.ProbeInterval.Duration = defaultIntervalV1
	}
	if store := s.Store; store != nil {
		spec.Endpoint = store.Endpoint
		spec.Region = store.Region
		spec.CredentialsSecretRef = SecretReference(store.CredentialsSecretRef)
	}
	return spec
}

func statusToV1(s *StorageBucketStatus) storagev1.StorageBucketStatus {
	status := storagev1.StorageBucketStatus{
		Conditions:             s.Conditions,
		ObservedGeneration:     s.ObservedGeneration,
		BucketName:             s.BucketName,
		External:               s.External,
		Applied:                s.Applied,
		Unsupported:            s.Unsupported,
		LastDriftCheckTime:     s.LastDriftCheckTime,
		LastHandledReconcileAt: s.LastHandledReconcileAt,
	}
	if s.Probe == nil && s.LastProbeTime == nil && s.LatencyMilliseconds == nil {
		return status
	}
	status.Probe = &storagev1.ProbeStatus{LastProbeTime: s.LastProbeTime, LatencyMilliseconds: s.LatencyMilliseconds}
	if s.Probe != nil {
		status.Probe.Reason = s.Probe.Reason
		status.Probe.ConsecutiveFailures = s.Probe.ConsecutiveFailures
		status.Probe.ConsecutiveSuccesses = s.Probe.ConsecutiveSuccesses
	}
	return status
}

func statusFromV1(s *storagev1.StorageBucketStatus) StorageBucketStatus {
	status := StorageBucketStatus{
		Conditions:             s.Conditions,
		ObservedGeneration:     s.ObservedGeneration,
		BucketName:             s.BucketName,
		External:               s.External,
		Applied:                s.Applied,
		Unsupported:            s.Unsupported,
		LastDriftCheckTime:     s.LastDriftCheckTime,
		LastHandledReconcileAt: s.LastHandledReconcileAt,
	}
	if s.Probe == nil {
		return status
	}
	status.LastProbeTime = s.Probe.LastProbeTime
	status.LatencyMilliseconds = s.Probe.LatencyMilliseconds
	outcome := ProbeOutcome{
		Reason:               s.Probe.Reason,
		ConsecutiveFailures:  s.Probe.ConsecutiveFailures,
		ConsecutiveSuccesses: s.Probe.ConsecutiveSuccesses,
	}
	// A probe without content must still exist after a conversion from v1 to v1alpha1 and
	// back.
	nothing := status.LastProbeTime == nil && status.LatencyMilliseconds == nil
	if outcome != (ProbeOutcome{}) || nothing {
		status.Probe = &outcome
	}
	return status
}
