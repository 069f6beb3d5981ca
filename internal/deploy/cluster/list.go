package cluster

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
)

// Listed is an object without its content.
type Listed struct {
	ID
	UID    types.UID
	Owners []metav1.OwnerReference
	kind   schema.GroupVersionKind
}

// Reference returns the object without its content, to read or delete it.
func (l *Listed) Reference() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(l.kind)
	u.SetNamespace(l.Namespace)
	u.SetName(l.Name)
	u.SetUID(l.UID)
	return u
}

// unlisted are resources whose objects disappear by themselves, or that the cluster itself writes at any time.
var unlisted = []string{"events", "leases"}

// All lists all objects of the cluster, except for Events and Leases, and for those that the user may not list.
func (c *Cluster) All(ctx context.Context) (all []Listed, err error) {
	lists, err := discovery.ServerPreferredResources(c.discovery)
	if len(lists) == 0 && err != nil { // an aggregated API that does not answer has no objects of ours
		return nil, fmt.Errorf("listing the kinds of the cluster: %w", err)
	}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains(unlisted, r.Name) {
				continue
			}
			listed, err := c.listed(ctx, group.WithResource(r.Name), group.WithKind(r.Kind))
			if err != nil {
				return nil, err
			}
			all = append(all, listed...)
		}
	}
	return all, nil
}

// listed lists the objects of one resource.
func (c *Cluster) listed(ctx context.Context, resource schema.GroupVersionResource, kind schema.GroupVersionKind) (all []Listed, err error) {
	objects, err := c.metadata.Resource(resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsForbidden(err) || apierrors.IsServiceUnavailable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
	}
	for i := range objects.Items {
		o := &objects.Items[i]
		all = append(all, Listed{ID{kind.GroupKind(), o.Namespace, o.Name}, o.UID, o.OwnerReferences, kind})
	}
	return all, nil
}
