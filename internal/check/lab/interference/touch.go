package interference

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// touchedMark is the annotation with which objects are touched. It never stays.
const touchedMark = state.Mark + "touched"

// Sign writes an object, but changes only its resourceVersion and its managedFields: it
// adds an entry for otherClient. No other write is as hard to notice. A server-side apply
// that changes nothing leaves even the resourceVersion as it is.
func Sign(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
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

// Unsign removes the entry that Sign has added.
func Unsign(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
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

// Annotate adds an annotation that no controller reads, and removes it again. The two
// changes reach even a controller that ignores changes outside of spec and annotations.
func Annotate(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
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

// Touch writes an object without changing its content, so that a controller whose actions
// depend on annotations has no reason to act.
func Touch(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	if err := Sign(ctx, resource, name); err != nil {
		return err
	}
	return Unsign(ctx, resource, name)
}
