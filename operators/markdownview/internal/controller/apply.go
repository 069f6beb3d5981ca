package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/metrics"
)

// child is one object of a site.
type child struct {
	kind string
	name string
	// want is the desired state; nil if the child should not exist.
	want runtime.ApplyConfiguration
	// meta is the metadata of want.
	meta *metav1ac.ObjectMetaApplyConfiguration
	// live receives the existing object.
	live client.Object
	// applied returns the part of live that the operator has applied.
	applied func() (runtime.ApplyConfiguration, error)
	// keepPath reports whether a route must stay unchanged if its path differs from the
	// wanted path.
	keepPath bool
}

// childError explains why a child is not in its desired state.
type childError struct {
	kind, name string
	// foreign reports whether the object does not belong to the MarkdownView.
	foreign bool
	err     error
}

func (e *childError) Error() string {
	if e.foreign {
		return fmt.Sprintf("%s %q exists but does not belong to this MarkdownView: delete or rename it, or rename the MarkdownView", e.kind, e.name)
	}
	return fmt.Sprintf("%s %q: %v", e.kind, e.name, e.err)
}

func (e *childError) Unwrap() error { return e.err }

// errRace reports that a child changed between the read and the write. The change triggers
// an event, so another reconciliation follows.
var errRace = errors.New("changed in the meantime")

// errGone reports that the MarkdownView has been deleted, although the cache still has it.
// Children created now would be garbage collected and created again until the cache
// catches up.
var errGone = errors.New("its MarkdownView is gone")

// absentVersion is a resource version that no object has. An apply with this version
// creates a missing object and conflicts with an existing one, so nothing is adopted by
// mistake.
const absentVersion = "1"

// ensure brings one child to its desired state with at most one write. If nothing differs,
// it writes nothing. Every error is a *childError.
func (r *Reconciler) ensure(ctx context.Context, p *pass, c child) error {
	owner := p.view
	wrap := func(err error) error { return &childError{kind: c.kind, name: c.name, err: err} }
	found, err := r.look(ctx, owner, c)
	if err != nil {
		return wrap(err)
	}
	switch {
	case !found && c.want == nil:
		return nil
	case !found:
		if err := r.exists(ctx, p); err != nil {
			return wrap(err)
		}
		c.meta.ResourceVersion = new(absentVersion)
	case !metav1.IsControlledBy(c.live, owner) && c.want == nil:
		return nil // the site does not need this object, and does not own it
	case !metav1.IsControlledBy(c.live, owner):
		return &childError{kind: c.kind, name: c.name, foreign: true}
	case c.live.GetDeletionTimestamp() != nil:
		return nil // the end of the deletion triggers a reconciliation
	case c.want == nil:
		return r.remove(ctx, c, wrap)
	default:
		applied, err := c.applied()
		if err != nil {
			return wrap(fmt.Errorf("reading the applied fields: %w", err))
		}
		if equality.Semantic.DeepEqual(applied, c.want) || c.keepPath && leadsElsewhere(applied, c.want) {
			return nil
		}
		c.meta.UID = new(c.live.GetUID())
	}
	if err := r.write(ctx, c); err != nil {
		return wrap(err)
	}
	return nil
}

// look reads the live object. An object that is missing from the cache may still exist,
// because it may lack the operator's labels or be too new. If the site needs the object,
// look therefore also reads it from the API server.
func (r *Reconciler) look(ctx context.Context, owner client.Object, c child) (found bool, err error) {
	key := types.NamespacedName{Namespace: owner.GetNamespace(), Name: c.name}
	err = r.client.Get(ctx, key, c.live)
	if apierrors.IsNotFound(err) && c.want != nil {
		err = r.reader.Get(ctx, key, c.live)
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// exists returns an error if the MarkdownView no longer exists or cannot be read. Later calls
// in the same pass reuse the answer of the API server.
func (r *Reconciler) exists(ctx context.Context, p *pass) error {
	switch {
	case p.exists:
		return nil
	case p.gone:
		return errGone
	}
	var live metav1.PartialObjectMetadata
	live.SetGroupVersionKind(viewv1.GroupVersion.WithKind("MarkdownView"))
	err := r.reader.Get(ctx, client.ObjectKeyFromObject(p.view), &live)
	switch {
	case apierrors.IsNotFound(err), err == nil && (live.UID != p.view.UID || live.DeletionTimestamp != nil):
		p.gone = true
		return errGone
	case err != nil:
		return fmt.Errorf("reading its MarkdownView: %w", err)
	}
	p.exists = true
	return nil
}

func (r *Reconciler) write(ctx context.Context, c child) error {
	err := r.client.Apply(ctx, c.want, client.FieldOwner(children.Owner), client.ForceOwnership)
	if isRace(err) {
		return errRace
	}
	if err == nil {
		metrics.ChildWritten(c.kind, "apply")
	}
	return err
}

func (r *Reconciler) remove(ctx context.Context, c child, wrap func(error) error) error {
	err := r.client.Delete(ctx, c.live, client.Preconditions{UID: new(c.live.GetUID())},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil {
		metrics.ChildWritten(c.kind, "delete")
	}
	if err = client.IgnoreNotFound(err); err == nil || apierrors.IsConflict(err) {
		return nil
	}
	return wrap(err)
}

// isRace reports whether the write failed because an object was created, changed, deleted
// or replaced after the read.
func isRace(err error) bool {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Field == "metadata.uid"
	})
}

// isRefusal reports whether an early retry is useless because a user must change something
// first.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusConflict:
		return false
	default:
		return code >= 400 && code < 500
	}
}
