// Package apply applies a list of objects to a cluster, and deletes the objects that only the
// previous list had.
//
//	objects ──▶ Apply ──▶ server-side apply of what has changed ──▶ deletion of what was removed
//
// It compares a list with what it has applied itself, not with the cluster. So it leaves the
// changes of controllers and users alone, and does nothing if the list has not changed.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/koboshi-dev/koboshi/internal/served"
)

// fieldManager is the name under which objects are applied.
const fieldManager = "koboshi-dev"

// Client connects to a cluster.
type Client struct {
	Dynamic dynamic.Interface
	Mapper  meta.ResettableRESTMapper
}

// Set is a list of objects in a cluster. Two sets must not have an object in common.
type Set struct {
	client  Client
	applied []object // in the order of their application
	keeps   bool
}

// object is an object as it was applied.
type object struct {
	ref
	manifest []byte
	resource schema.GroupVersionResource
}

// ref identifies an object. It has no version, so that the same object in another version is
// no other object.
type ref struct {
	kind            schema.GroupKind
	namespace, name string
}

func (r ref) String() string {
	name := r.name
	if r.namespace != "" {
		name = r.namespace + "/" + name
	}
	return r.kind.Kind + " " + name
}

// NewSet returns an empty set.
func NewSet(client Client) *Set { return &Set{client: client} }

// Use makes the set use another connection to the same cluster.
func (s *Set) Use(client Client) { s.client = client }

// Keep stops Apply from deleting the objects that a list no longer has.
func (s *Set) Keep() { s.keeps = true }

// Adopt treats an object as already applied, so that Apply applies it only when it changes.
func (s *Set) Adopt(u *unstructured.Unstructured) error {
	kind := u.GroupVersionKind()
	what := ref{kind: kind.GroupKind(), namespace: u.GetNamespace(), name: u.GetName()}
	mapping, err := s.client.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("looking for %s: %w", what, err)
	}
	manifest, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	s.put(object{ref: what, manifest: manifest, resource: mapping.Resource})
	return nil
}

// Result lists what Apply has done, each object as its kind and its name.
type Result struct {
	// Applied lists the objects that were new or differed from the list before, and Pruned
	// those that were deleted.
	Applied, Pruned []string
}

// Apply applies the objects in their order, and deletes those that were in the previous list but
// are missing from this one. CRDs that follow each other are served before the object after them is
// applied. If an object is refused, Apply continues with the others, but deletes nothing. The next
// call repeats what has failed.
func (s *Set) Apply(ctx context.Context, objects []unstructured.Unstructured) (Result, error) {
	a := &application{set: s, wanted: map[ref]bool{}}
	for i := range objects {
		if !served.IsCRD(&objects[i]) {
			a.served(ctx)
		}
		a.fail(a.apply(ctx, &objects[i]))
	}
	a.served(ctx)
	if len(a.failed) == 0 && !s.keeps {
		a.fail(a.prune(ctx))
	}
	return a.result, errors.Join(a.failed...)
}

// application is one call of Apply.
type application struct {
	set    *Set
	wanted map[ref]bool
	crds   []*unstructured.Unstructured // that may not be served yet
	result Result
	failed []error
}

func (a *application) fail(err error) {
	if err != nil {
		a.failed = append(a.failed, err)
	}
}

func (a *application) served(ctx context.Context) {
	err := served.Wait(ctx, a.set.client.Dynamic, a.set.client.Mapper, a.crds)
	for i := range a.set.applied {
		o := &a.set.applied[i]
		if err != nil && slices.ContainsFunc(a.crds, func(c *unstructured.Unstructured) bool {
			return o.kind == c.GroupVersionKind().GroupKind() && o.name == c.GetName()
		}) {
			o.manifest = nil // so that the next call applies it again
		}
	}
	a.fail(err)
	a.crds = nil
}

func (a *application) apply(ctx context.Context, u *unstructured.Unstructured) error {
	kind := u.GroupVersionKind()
	what := ref{kind: kind.GroupKind(), namespace: u.GetNamespace(), name: u.GetName()}
	if what.name == "" {
		return fmt.Errorf("a %s has no name; add metadata.name, because only objects with a name can be applied again", kind.Kind)
	}
	mapping, err := a.set.client.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		a.wanted[what] = true
		return fmt.Errorf("applying %s: %w", what, err)
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if namespaced && what.namespace == "" {
		what.namespace = metav1.NamespaceDefault
	}
	a.wanted[what] = true
	manifest, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("applying %s: %w", what, err)
	}
	if before := a.set.find(what); before != nil && string(before.manifest) == string(manifest) {
		return nil
	}
	is := object{ref: what, manifest: manifest, resource: mapping.Resource}
	_, err = is.at(a.set.client.Dynamic).Apply(ctx, what.name, u, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("applying %s: %w", what, err)
	}
	a.set.put(is)
	a.result.Applied = append(a.result.Applied, what.String())
	if served.IsCRD(u) {
		a.crds = append(a.crds, u)
	}
	return nil
}

// at returns the client for the resource of an object in its namespace.
func (o *object) at(client dynamic.Interface) dynamic.ResourceInterface {
	if o.namespace == "" {
		return client.Resource(o.resource)
	}
	return client.Resource(o.resource).Namespace(o.namespace)
}

func (s *Set) find(what ref) *object {
	i := slices.IndexFunc(s.applied, func(o object) bool { return o.ref == what })
	if i < 0 {
		return nil
	}
	return &s.applied[i]
}

func (s *Set) put(is object) {
	if before := s.find(is.ref); before != nil {
		*before = is
		return
	}
	s.applied = append(s.applied, is)
}

// prune deletes what is no longer wanted, in the reverse order of its application.
func (a *application) prune(ctx context.Context) error {
	var failed []error
	for i := len(a.set.applied) - 1; i >= 0; i-- {
		was := a.set.applied[i]
		if a.wanted[was.ref] {
			continue
		}
		if err := was.at(a.set.client.Dynamic).Delete(ctx, was.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("deleting %s, which the manifests no longer contain: %w", was.ref, err))
			continue
		}
		a.set.applied = slices.Delete(a.set.applied, i, i+1)
		a.result.Pruned = append(a.result.Pruned, was.String())
	}
	return errors.Join(failed...)
}
