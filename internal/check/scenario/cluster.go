package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// fieldManager owns the fields that scenarios write.
const fieldManager = "koboshi-check"

// Cluster holds the connection to the cluster in which a scenario is performed.
type Cluster struct {
	Client dynamic.Interface
	// Mapper is reset if it does not know a kind, provided that it supports a reset.
	Mapper meta.RESTMapper
	// Kubeconfig is the path that is passed to commands as KUBECONFIG.
	Kubeconfig string
	// Env holds the variables of the endpoints, which are added to the environment of
	// commands.
	Env []string
	// Output also receives the output of commands; nil means that only the end is kept, for errors.
	Output io.Writer
	// Home is the home directory of commands; see package home.
	Home string
	// Endpoints maps the name of each endpoint to the URL of the proxy in front of it.
	Endpoints map[string]string
	// Namespace is used for objects without a namespace; empty means default.
	Namespace string
	// Dir is the folder in which commands run: the Dir of the scenario, or the working
	// directory if empty.
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

// resource returns the client for the object. It sets the namespace of ref if one
// is needed and missing, and clears it if the kind is cluster-scoped.
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

// These constants limit the time in which a request is retried.
const (
	// forKinds limits the wait until the kind of a new CRD is served. A kind that is still
	// unknown after this time is treated as a mistake in the scenario.
	forKinds = 5 * time.Second
	// withoutDeadline is the limit if the context has no deadline.
	withoutDeadline = 30 * time.Second
)

// persist retries a request until it succeeds, fails permanently, or ctx ends. It retries
// after temporary errors: the server is unreachable or busy, another client wrote in
// between, or a webhook cannot be called yet. For a short time, it also retries if a kind
// is not served yet. A rejection by validation or by a webhook is permanent.
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

// transient reports whether a retry may succeed.
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

// notServed reports whether err means that the kind is unknown, either to the REST mapper or to
// the API server. In the second case, the error names no object.
func notServed(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) &&
		(status.Status().Details == nil || status.Status().Details.Name == "")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
