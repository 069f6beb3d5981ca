package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// touchedMark is the annotation with which objects are touched. It never stays.
const touchedMark = state.Mark + "touched"

// provoke writes the object of a request as another client, so that a write based on the
// earlier version gets a genuine conflict. It takes the write back when the step is at
// rest.
func (k *knock) provoke(ctx context.Context, t trace.Target) error {
	var resource dynamic.ResourceInterface = k.run.lab.client.Resource(schema.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Resource})
	if t.Namespace != "" {
		resource = k.run.lab.client.Resource(schema.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Resource}).Namespace(t.Namespace)
	}
	err := sign(ctx, resource, t.Name)
	if err != nil {
		k.refuse(fmt.Sprintf("another client could not write %s %s: %v", t.Resource, t.Name, err))
		return err
	}
	k.keep(k.run.current.get(), func() {
		_ = unsign(context.WithoutCancel(ctx), resource, t.Name) // the object may be gone
	})
	return nil
}

// sign writes an object, but changes only its resourceVersion and its managedFields: it
// adds an entry for otherClient. No other write is as hard to notice. A server-side apply
// that changes nothing leaves even the resourceVersion as it is.
func sign(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	object, err := resource.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	entry := metav1.ManagedFieldsEntry{
		Manager: otherClient, Operation: metav1.ManagedFieldsOperationApply, APIVersion: object.GetAPIVersion(), FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:metadata":{"f:annotations":{%q:{}}}}`, "f:"+touchedMark)),
	}
	add := operation{Op: "add", Path: "/metadata/managedFields/-", Value: entry}
	if len(object.GetManagedFields()) == 0 {
		add = operation{Op: "add", Path: "/metadata/managedFields", Value: []any{entry}}
	}
	now, err := patch(ctx, resource, name, add)
	if err == nil && now.GetResourceVersion() == object.GetResourceVersion() {
		return errors.New("the write did not change the resourceVersion")
	}
	return err
}

// unsign removes the entry that sign has added.
func unsign(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	for range 5 {
		object, err := resource.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		at := slices.IndexFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == otherClient && e.Operation == metav1.ManagedFieldsOperationApply
		})
		if at < 0 {
			return nil // the controller has removed it
		}
		path := fmt.Sprintf("/metadata/managedFields/%d", at)
		_, err = patch(ctx, resource, name,
			operation{Op: "test", Path: path + "/manager", Value: otherClient}, // the order may have changed
			operation{Op: "test", Path: path + "/operation", Value: metav1.ManagedFieldsOperationApply},
			operation{Op: "remove", Path: path})
		if !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return errors.New("the object kept changing")
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func patch(ctx context.Context, resource dynamic.ResourceInterface, name string, operations ...operation) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	return resource.Patch(ctx, name, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: otherClient})
}

// annotate adds an annotation that no controller reads, and removes it again. The two
// changes reach even a controller that ignores changes outside of spec and annotations.
func annotate(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	for _, value := range []any{time.Now().Format(time.RFC3339Nano), nil} {
		data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{touchedMark: value}}})
		if err != nil {
			return err
		}
		if _, err = resource.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: otherClient}); err != nil {
			return err
		}
	}
	return nil
}

// poke annotates every object of the kinds that the controller reconciles, and removes the
// annotation.
func (r *run) poke(ctx context.Context) error { return r.eachPrimary(ctx, annotate) }

// nudge writes every object of the kinds that the controller reconciles without changing
// its content, so that a controller whose actions depend on annotations has no reason to
// act.
func (r *run) nudge(ctx context.Context) error {
	return r.eachPrimary(ctx, func(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
		if err := sign(ctx, resource, name); err != nil {
			return err
		}
		return unsign(ctx, resource, name)
	})
}

// eachPrimary calls do for every object of the kinds that the controller reconciles.
func (r *run) eachPrimary(ctx context.Context, do func(context.Context, dynamic.ResourceInterface, string) error) error {
	primary := r.lab.config.Subject.Primary
	found := r.lab.store.find(func(ref state.Ref, _ state.Object) bool {
		return slices.Contains(primary, ref.String())
	})
	for _, object := range found {
		u := &unstructured.Unstructured{Object: object}
		resource, err := r.lab.resource(u)
		if err == nil {
			err = do(ctx, resource, u.GetName())
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("touching %s %s: %w", u.GetKind(), nameOf(u), err)
		}
	}
	return nil
}
