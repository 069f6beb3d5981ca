package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions keep in the manager's memory what is needed and no more: of the
// objects' metadata neither who wrote which field nor the copy of everything
// that kubectl apply leaves in an annotation. Secrets and ConfigMaps are not
// cached at all; see package refs. No namespaces means all.
func CacheOptions(namespaces ...string) cache.Options {
	o := cache.Options{DefaultTransform: strip}
	for _, namespace := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[namespace] = cache.Config{}
	}
	return o
}

// UncachedObjects are always read from the API server.
func UncachedObjects() []client.Object {
	return []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Namespace{}}
}

func strip(obj any) (any, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return obj, nil //nolint:nilerr // a tombstone has no metadata, and passes as it is
	}
	accessor.SetManagedFields(nil)
	if annotations := accessor.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		accessor.SetAnnotations(annotations)
	}
	return obj, nil
}
