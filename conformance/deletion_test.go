package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Owners and dependents are ConfigMaps, because no other controller touches ConfigMaps. The
// garbage collector has one informer for all ConfigMaps, so it sees the dependents before
// the deletion of the owner.

const (
	holdFinalizer = "conformance.example.com/hold"

	// A mistake by the garbage collector shows within milliseconds.
	mistakeShows = 500 * time.Millisecond
)

func TestBackgroundDeletionRemovesTheOwnerAndThenItsDependents(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	owner := p.create(t, ns, "owner")
	// The finalizer keeps the dependent, so that it can be inspected after the owner is
	// gone.
	p.create(t, ns, "dependent", ownedBy(owner, true), held)
	p.deleteBy(t, owner, metav1.DeletePropagationBackground)
	if err := p.isGone(t.Context(), ns, "owner"); err != nil {
		t.Error(err)
	}
	p.waitForDeletion(t, ns, "dependent")
	p.release(t, ns, "dependent")
	p.waitUntilGone(t, ns, "dependent")
}

func TestForegroundDeletionRemovesTheDependentsAndThenTheOwner(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	owner := p.create(t, ns, "owner")
	last := p.create(t, ns, "dependent", ownedBy(owner, true))
	events, err := p.client.CoreV1().ConfigMaps(ns).Watch(t.Context(), metav1.ListOptions{ResourceVersion: last.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	p.deleteBy(t, owner, metav1.DeletePropagationForeground)
	var gone []string
	for !slices.Contains(gone, "owner") {
		event := nextEvent(t, events)
		if cm, ok := event.Object.(*corev1.ConfigMap); ok && event.Type == watch.Deleted && cm.Name != rootCA {
			gone = append(gone, cm.Name)
		}
	}
	if want := []string{"dependent", "owner"}; !slices.Equal(gone, want) {
		t.Errorf("removed %v; want %v", gone, want)
	}
}

func TestForegroundDeletionWaitsForBlockingDependents(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	owner := p.create(t, ns, "owner")
	p.create(t, ns, "dependent", ownedBy(owner, true), held)
	p.deleteBy(t, owner, metav1.DeletePropagationForeground)
	p.waitForDeletion(t, ns, "dependent")
	never(t, "the owner goes while its dependent exists", mistakeShows, func(ctx context.Context) error {
		cm, err := p.client.CoreV1().ConfigMaps(ns).Get(ctx, "owner", metav1.GetOptions{})
		if err == nil && !slices.Contains(cm.Finalizers, metav1.FinalizerDeleteDependents) {
			err = fmt.Errorf("the owner's finalizers are %v", cm.Finalizers)
		}
		return err
	})
	p.release(t, ns, "dependent")
	p.waitUntilGone(t, ns, "owner")
}

func TestForegroundDeletionDoesNotWaitForOtherDependents(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	owner := p.create(t, ns, "owner")
	p.create(t, ns, "dependent", ownedBy(owner, false), held)
	p.deleteBy(t, owner, metav1.DeletePropagationForeground)
	p.waitUntilGone(t, ns, "owner")
	p.waitForDeletion(t, ns, "dependent")
	p.release(t, ns, "dependent")
}

func TestOrphanDeletionKeepsTheDependentsWithoutTheirReference(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	owner := p.create(t, ns, "owner")
	p.create(t, ns, "dependent", ownedBy(owner, true))
	p.deleteBy(t, owner, metav1.DeletePropagationOrphan)
	p.waitUntilGone(t, ns, "owner")
	dependent, err := p.client.CoreV1().ConfigMaps(ns).Get(t.Context(), "dependent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(dependent.OwnerReferences) != 0 || dependent.DeletionTimestamp != nil {
		t.Errorf("the dependent has owners %v, deletion time %v", dependent.OwnerReferences, dependent.DeletionTimestamp)
	}
}

// The garbage collector looks up a namespaced owner in the namespace of the dependent,
// where this owner does not exist; see pkg/controller/garbagecollector of v1.37.
func TestDependentOfAnOwnerInAnotherNamespaceIsCollectedWithAnEvent(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns, other := p.namespace(t), p.namespace(t)
	owner := p.create(t, other, "owner")
	p.create(t, ns, "dependent", ownedBy(owner, true))
	p.waitUntilGone(t, ns, "dependent")
	eventually(t, "the event OwnerRefInvalidNamespace", func(ctx context.Context) error {
		events, err := p.client.CoreV1().Events(ns).List(ctx, metav1.ListOptions{
			FieldSelector: "reason=OwnerRefInvalidNamespace,involvedObject.name=dependent",
		})
		if err != nil {
			return err
		}
		return wantCount("events", len(events.Items), 1)
	})
	if err := p.isGone(t.Context(), other, "owner"); err == nil {
		t.Error("the owner is gone too")
	}
}

func TestDeletionOfAnotherUIDIsRefused(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	cm := p.create(t, ns, "kept")
	uid := types.UID("00000000-0000-0000-0000-000000000000")
	p.mustConflict(t, cm, p.client.CoreV1().ConfigMaps(ns).Delete(t.Context(), "kept", metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid},
	}))
}

func TestDeletionOfAnotherResourceVersionIsRefused(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	cm, old := p.changed(t, ns)
	p.mustConflict(t, cm, p.client.CoreV1().ConfigMaps(ns).Delete(t.Context(), "kept", metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{ResourceVersion: &old.ResourceVersion},
	}))
}

func TestUpdateOfAnOldResourceVersionIsRefused(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	cm, old := p.changed(t, ns)
	old.Data = map[string]string{"value": "of the loser"}
	_, err := p.client.CoreV1().ConfigMaps(ns).Update(t.Context(), old, metav1.UpdateOptions{})
	p.mustConflict(t, cm, err)
}

func TestUpdateOfAnotherUIDIsRefused(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	cm := p.create(t, ns, "kept")
	other := cm.DeepCopy()
	other.UID = "00000000-0000-0000-0000-000000000000"
	_, err := p.client.CoreV1().ConfigMaps(ns).Update(t.Context(), other, metav1.UpdateOptions{})
	p.mustConflict(t, cm, err)
}

func TestFinalizerHoldsAnObjectUntilItIsRemoved(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	cm := p.create(t, ns, "held", held)
	p.deleteBy(t, cm, metav1.DeletePropagationBackground)
	p.waitForDeletion(t, ns, "held")
	never(t, "a held object goes", mistakeShows, func(ctx context.Context) error {
		_, err := p.client.CoreV1().ConfigMaps(ns).Get(ctx, "held", metav1.GetOptions{})
		return err
	})
	p.release(t, ns, "held")
	if err := p.isGone(t.Context(), ns, "held"); err != nil {
		t.Error(err)
	}
}

func TestNamespaceDisappearsWithAllItsContent(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	notes := p.defineNotes(t, ns)
	p.applyIn(t, ns, nginxDeployment+"---"+nginxService)
	p.create(t, ns, "plain")
	p.createNote(t, ns, notes)
	p.deleteNamespace(t, ns)
	eventually(t, "the namespace to be gone", func(ctx context.Context) error {
		_, err := p.client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		return wantNotFound("the namespace", err)
	})
	core, apps := schema.GroupVersion{Version: "v1"}, schema.GroupVersion{Group: "apps", Version: "v1"}
	for _, resource := range []schema.GroupVersionResource{
		notes, apps.WithResource("deployments"), apps.WithResource("replicasets"),
		core.WithResource("pods"), core.WithResource("services"), core.WithResource("configmaps"), core.WithResource("serviceaccounts"),
	} {
		left, err := p.dynamic.Resource(resource).Namespace(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Error(err)
		} else if len(left.Items) > 0 {
			t.Errorf("%d %s are left", len(left.Items), resource.Resource)
		}
	}
}

func TestNamespaceStaysTerminatingAndSaysWhichFinalizerHoldsIt(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.create(t, ns, "held", held)
	p.deleteNamespace(t, ns)
	eventually(t, "the namespace to say why it stays", func(ctx context.Context) error {
		namespace, err := p.client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range namespace.Status.Conditions {
			if c.Type == corev1.NamespaceFinalizersRemaining && c.Status == corev1.ConditionTrue &&
				strings.Contains(c.Message, holdFinalizer) && namespace.Status.Phase == corev1.NamespaceTerminating {
				return nil
			}
		}
		return fmt.Errorf("phase %s, conditions %v", namespace.Status.Phase, namespace.Status.Conditions)
	})
	p.release(t, ns, "held")
	eventually(t, "the namespace to be gone", func(ctx context.Context) error {
		_, err := p.client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		return wantNotFound("the namespace", err)
	})
}

// rootCA is the ConfigMap that upstream's controller puts into every namespace.
const rootCA = "kube-root-ca.crt"

// create creates a ConfigMap.
func (p *plane) create(t *testing.T, ns, name string, with ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, change := range with {
		change(cm)
	}
	cm, err := p.client.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

func ownedBy(owner *corev1.ConfigMap, blocking bool) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) {
		cm.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &blocking,
		}}
	}
}

func held(cm *corev1.ConfigMap) { cm.Finalizers = []string{holdFinalizer} }

// changed creates and changes a ConfigMap. It returns the ConfigMap after the change and
// before the change.
func (p *plane) changed(t *testing.T, ns string) (cm, old *corev1.ConfigMap) {
	t.Helper()
	old = p.create(t, ns, "kept")
	cm = old.DeepCopy()
	cm.Data = map[string]string{"value": "of the winner"}
	cm, err := p.client.CoreV1().ConfigMaps(ns).Update(t.Context(), cm, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cm, old
}

// mustConflict checks that err is 409 Conflict and that cm is unchanged.
func (p *plane) mustConflict(t *testing.T, cm *corev1.ConfigMap, err error) {
	t.Helper()
	if !apierrors.IsConflict(err) {
		t.Errorf("the answer is %v; want 409 Conflict", err)
	}
	now, err := p.client.CoreV1().ConfigMaps(cm.Namespace).Get(t.Context(), cm.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if now.ResourceVersion != cm.ResourceVersion {
		t.Errorf("resource version %s became %s: a refused write took place", cm.ResourceVersion, now.ResourceVersion)
	}
}

func (p *plane) deleteBy(t *testing.T, cm *corev1.ConfigMap, policy metav1.DeletionPropagation) {
	t.Helper()
	err := p.client.CoreV1().ConfigMaps(cm.Namespace).Delete(t.Context(), cm.Name, metav1.DeleteOptions{PropagationPolicy: &policy})
	if err != nil {
		t.Fatal(err)
	}
}

// release removes all finalizers of a ConfigMap.
func (p *plane) release(t *testing.T, ns, name string) {
	t.Helper()
	_, err := p.client.CoreV1().ConfigMaps(ns).Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// waitForDeletion waits until a ConfigMap that has a finalizer is marked for deletion.
func (p *plane) waitForDeletion(t *testing.T, ns, name string) {
	t.Helper()
	eventually(t, "the deletion of "+name, func(ctx context.Context) error {
		cm, err := p.client.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{})
		if err == nil && cm.DeletionTimestamp == nil {
			err = errors.New("it is not being deleted")
		}
		return err
	})
}

func (p *plane) waitUntilGone(t *testing.T, ns, name string) {
	t.Helper()
	eventually(t, name+" to be gone", func(ctx context.Context) error { return p.isGone(ctx, ns, name) })
}

func (p *plane) isGone(ctx context.Context, ns, name string) error {
	_, err := p.client.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{})
	return wantNotFound(name, err)
}

func wantNotFound(what string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return errors.New(what + " is still there")
	}
	return err
}

func (p *plane) deleteNamespace(t *testing.T, ns string) {
	t.Helper()
	if err := p.client.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

const noteDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.$NS.example.com}
spec:
  group: $NS.example.com
  scope: Namespaced
  names: {kind: Note, plural: notes, singular: note, listKind: NoteList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// defineNotes defines a resource in a group that is unique to the namespace, so that
// tests do not share it.
func (p *plane) defineNotes(t *testing.T, ns string) schema.GroupVersionResource {
	t.Helper()
	p.applyIn(t, ns, noteDefinition)
	t.Cleanup(func() {
		definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		err := p.dynamic.Resource(definitions).Delete(context.Background(), "notes."+ns+".example.com", metav1.DeleteOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	return schema.GroupVersionResource{Group: ns + ".example.com", Version: "v1", Resource: "notes"}
}

func (p *plane) createNote(t *testing.T, ns string, notes schema.GroupVersionResource) {
	t.Helper()
	note := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": notes.GroupVersion().String(), "kind": "Note", "metadata": map[string]any{"name": "note"},
	}}
	eventually(t, "the new kind to be served", func(ctx context.Context) error {
		_, err := p.dynamic.Resource(notes).Namespace(ns).Create(ctx, note, metav1.CreateOptions{})
		return err
	})
}
