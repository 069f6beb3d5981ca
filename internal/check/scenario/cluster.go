package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
)

// fieldManager owns what scenarios write.
const fieldManager = "koboshi-check"

// Cluster is where a scenario is done, and as whom.
type Cluster struct {
	Client dynamic.Interface
	// Mapper is reset if it does not know a kind and can be.
	Mapper meta.RESTMapper
	// Kubeconfig is the file that commands find as KUBECONFIG.
	Kubeconfig string
	// Env is added to the environment of commands: the endpoints' variables.
	Env []string
	// Endpoints has for each endpoint's name the URL of the proxy before it.
	Endpoints map[string]string
	// Namespace is that of objects that name none; empty means default.
	Namespace string
	// Dir is where commands are run: the scenario's Dir. Empty means the working
	// directory.
	Dir string
}

func (r ObjectRef) String() string {
	kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind().String()
	if r.Namespace == "" {
		return kind + " " + r.Name
	}
	return kind + " " + r.Namespace + "/" + r.Name
}

func refOf(object map[string]any) ObjectRef {
	u := unstructured.Unstructured{Object: object}
	return ObjectRef{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}
}

// resource is how the object is reached. Namespace is put into ref if it needs
// one and has none, and taken out if its kind has none.
func (c Cluster) resource(ref *ObjectRef) (dynamic.ResourceInterface, error) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	mapping, err := c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		if resettable, can := c.Mapper.(meta.ResettableRESTMapper); can {
			resettable.Reset()
			mapping, err = c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		}
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		ref.Namespace = ""
		return c.Client.Resource(mapping.Resource), nil
	}
	if ref.Namespace == "" {
		ref.Namespace = c.namespace()
	}
	return c.Client.Resource(mapping.Resource).Namespace(ref.Namespace), nil
}

func (c Cluster) namespace() string {
	if c.Namespace != "" {
		return c.Namespace
	}
	return "default"
}

// How long a request is tried again.
const (
	// forKinds is the time in which a definition that was just created has to be
	// served; after that the kind is taken to be a mistake.
	forKinds = 5 * time.Second
	// withoutDeadline is the bound for callers that give none.
	withoutDeadline = 30 * time.Second
)

// persist does something until it succeeds, fails for good, or ctx ends. Tried
// again is what a person at kubectl would try again: the server is not there or
// busy, somebody else wrote in between, a webhook cannot be called yet, and for a
// short time a kind that is not served yet. A refusal by validation or by a
// webhook that answers is for good.
func persist(ctx context.Context, what string, do func() error) error {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, withoutDeadline)
		defer cancel()
	}
	began := time.Now()
	var last error
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && last != nil:
			return fmt.Errorf("%s: gave up after %s: %w", what, time.Since(began).Round(time.Millisecond), last)
		case notServed(err) && time.Since(began) < forKinds, transient(err):
			last = err
		default:
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: gave up after %s: %w", what, time.Since(began).Round(time.Millisecond), last)
		case <-time.After(pause):
		}
	}
}

// transient says that it makes sense to try again.
func transient(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err):
		return true
	case apierrors.IsInternalError(err):
		message := err.Error()
		return slices.ContainsFunc([]string{"failed calling webhook", "conversion webhook", "connection refused", "no endpoints available"},
			func(part string) bool { return strings.Contains(message, part) })
	}
	return false
}

// notServed says that the kind is not known: to the mapper, or to the server,
// which then does not say which object it could not find.
func notServed(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) &&
		(status.Status().Details == nil || status.Status().Details.Name == "")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
