// Package cluster reads, applies and deletes single objects for koboshi deploy.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// FieldManager is the name under which objects are applied.
const FieldManager = "koboshi-deploy"

// Cluster is a connection to a cluster.
type Cluster struct {
	Dynamic dynamic.Interface
	Mapper  meta.ResettableRESTMapper
	// Namespace is the namespace of objects that do not name one.
	Namespace string
	// Server is the address of the API server, for messages.
	Server string

	discovery discovery.DiscoveryInterface
	metadata  metadata.Interface
}

// Connect returns a connection. It sends no request.
func Connect(config *rest.Config, namespace string) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1 // the API server limits its clients itself
	// The warnings of the API server would be printed into the progress on a terminal.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &Cluster{
		Dynamic: client, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found)),
		Namespace: namespace, Server: config.Host, discovery: found, metadata: lists,
	}, nil
}

// ID identifies an object. It has no version, so that the same object in another version is no
// other object.
type ID struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// IDOf returns the ID of an object.
func IDOf(u *unstructured.Unstructured) ID {
	return ID{Kind: u.GroupVersionKind().GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

func (id ID) String() string {
	if id.Namespace == "" {
		return id.Kind.Kind + " " + id.Name
	}
	return id.Kind.Kind + " " + id.Namespace + "/" + id.Name
}

// Get reads an object; nil means that it does not exist, or that the cluster does not have its kind.
func (c *Cluster) Get(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	at, err := c.At(u)
	if meta.IsNoMatchError(err) {
		return nil, nil //nolint:nilnil // nil is the documented answer
	}
	if err != nil {
		return nil, err
	}
	live, err := at.Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nil is the documented answer
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", IDOf(u), err)
	}
	return live, nil
}

// Apply says how an object is applied.
type Apply struct {
	// Force takes fields over from other managers.
	Force bool
	// Dry makes the API server check everything, and store nothing.
	Dry bool
}

// Apply applies an object by server-side apply, and returns the result.
func (c *Cluster) Apply(ctx context.Context, u *unstructured.Unstructured, how Apply) (*unstructured.Unstructured, error) {
	at, err := c.At(u)
	if err != nil {
		return nil, fmt.Errorf("applying %s: %w", IDOf(u), err)
	}
	options := metav1.ApplyOptions{FieldManager: FieldManager, Force: how.Force}
	if how.Dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	result, err := at.Apply(ctx, u.GetName(), u, options)
	if err != nil {
		return nil, fmt.Errorf("applying %s: %w", IDOf(u), explained(err))
	}
	return result, nil
}

// Create creates an object that must not exist. Later, Apply may change it.
func (c *Cluster) Create(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	at, err := c.At(u)
	if err != nil {
		return nil, fmt.Errorf("creating %s: %w", IDOf(u), err)
	}
	created, err := at.Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil {
		return nil, fmt.Errorf("creating %s: %w", IDOf(u), err)
	}
	return created, nil
}

// explained adds what to do to the error of a conflict with another field manager.
func explained(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			fields = append(fields, fmt.Sprintf("%s: %s", cause.Field, cause.Message))
		}
	}
	if len(fields) == 0 {
		return err
	}
	return conflict{fmt.Sprintf("other managers own these fields:\n  %s\nremove the fields from the manifest, or use --force-conflicts to take them over",
		strings.Join(fields, "\n  ")), err}
}

// conflict is an error with a text of its own.
type conflict struct {
	text string
	err  error
}

func (c conflict) Error() string { return c.text }

func (c conflict) Unwrap() error { return c.err }

// Delete begins the deletion of an object. It is no error if the object does not exist.
func (c *Cluster) Delete(ctx context.Context, u *unstructured.Unstructured, how metav1.DeletionPropagation) error {
	at, err := c.At(u)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	options := metav1.DeleteOptions{PropagationPolicy: &how}
	// Another object of the same name, made since this one was read, belongs to somebody else.
	if uid := u.GetUID(); uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	if err := at.Delete(ctx, u.GetName(), options); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %s: %w", IDOf(u), err)
	}
	return nil
}

// At returns the client for an object's resource in the object's namespace.
func (c *Cluster) At(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := u.GroupVersionKind()
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.Dynamic.Resource(mapping.Resource).Namespace(u.GetNamespace()), nil
	}
	return c.Dynamic.Resource(mapping.Resource), nil
}

// Namespaced reports whether the objects of a kind have a namespace.
func (c *Cluster) Namespaced(kind schema.GroupVersionKind) (bool, error) {
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}
