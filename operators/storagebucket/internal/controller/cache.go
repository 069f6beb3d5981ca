package controller

import (
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// CacheOptions limits the manager's cache to what is needed: the cache drops managedFields
// and the annotation in which kubectl apply keeps a copy of the object. Secrets and
// ConfigMaps are not cached at all; see package refs. If no namespaces are given, all
// namespaces are cached.
//
// Reads from the cache return the cached objects themselves and not copies. When 10,000 buckets are
// read, most of them need no work, and copies of them would make up most of the garbage. Code that
// changes an object, or decodes a response into it, must copy it first.
func CacheOptions(namespaces ...string) cache.Options {
	o := cache.Options{DefaultTransform: strip, DefaultUnsafeDisableDeepCopy: new(true)}
	for _, namespace := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[namespace] = cache.Config{}
	}
	return o
}

// UncachedObjects returns objects of the kinds that are always read from the API server.
func UncachedObjects() []client.Object {
	return []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Namespace{}}
}

func strip(obj any) (any, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return obj, nil //nolint:nilerr // a tombstone has no metadata, and passes unchanged
	}
	accessor.SetManagedFields(nil)
	if annotations := accessor.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		accessor.SetAnnotations(annotations)
	}
	if b, ok := obj.(*storagev1.StorageBucket); ok {
		share(b)
	}
	return obj, nil
}

// share makes buckets that have equal strings share one copy of each string. Such strings
// make up most of the text of a decoded bucket.
func share(b *storagev1.StorageBucket) {
	once(&b.Namespace)
	once(&b.Spec.Management)
	once(&b.Spec.DeletionPolicy)
	once(&b.Spec.Probe.Method)
	if ref := b.Spec.StoreRef; ref != nil {
		once(&ref.Name)
		once(&ref.Namespace)
	}
	if p := b.Status.Probe; p != nil {
		once(&p.Reason)
	}
	b.Status.Conditions = slices.Clip(slices.Clone(b.Status.Conditions))
	for i := range b.Status.Conditions {
		c := &b.Status.Conditions[i]
		once(&c.Type)
		once(&c.Status)
		once(&c.Reason)
		once(&c.Message)
	}
}

func once[S ~string](s *S) { *s = unique.Make(*s).Value() }
