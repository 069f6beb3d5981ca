// Package interference writes to the cluster as another client: it touches, edits and
// deletes objects, and adds finalizers. Other packages decide when and why it does so.
package interference

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// otherClient is the field manager of all writes by the simulated other client.
const otherClient = fault.OtherClient

// Client connects to the cluster with the rights of an administrator.
type Client struct {
	Dynamic dynamic.Interface
	Mapper  meta.RESTMapper
}

// Resource returns the client for an object's resource.
func (c Client) Resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	namespace := object.GetNamespace()
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return c.Dynamic.Resource(mapping.Resource), nil
	}
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return c.Dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

// At returns the client for a resource in a namespace, or for a cluster-scoped resource if
// the namespace is empty.
func (c Client) At(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.Dynamic.Resource(resource)
	}
	return c.Dynamic.Resource(resource).Namespace(namespace)
}

// A Write changes one object.
type Write func(ctx context.Context, resource dynamic.ResourceInterface, name string) error

// Each performs a write on each object. An object that no longer exists is no error.
func (c Client) Each(ctx context.Context, objects map[state.Ref]state.Object, do Write) error {
	for ref, object := range objects {
		u := &unstructured.Unstructured{Object: object}
		resource, err := c.Resource(u)
		if err == nil {
			err = do(ctx, resource, u.GetName())
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("touching %s %s: %w", ref.Kind, nameOf(ref), err)
		}
	}
	return nil
}

// nameOf returns namespace/name, or only the name of a cluster-scoped object.
func nameOf(ref state.Ref) string {
	if ref.Namespace == "" {
		return ref.Name
	}
	return ref.Namespace + "/" + ref.Name
}
