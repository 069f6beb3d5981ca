package interference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// holdFinalizer is the finalizer that the simulated other client adds. Comparisons ignore it.
const holdFinalizer = state.Mark + "hold"

// Delete deletes an object, and in the background everything that it owns. Delete does not delete
// an object that has the same name but another UID.
func Delete(ctx context.Context, resource dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	uid := object.GetUID()
	background := metav1.DeletePropagationBackground
	return resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{
		PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid},
	})
}

// Edit changes one field of an object to the first of the values that the API server
// accepts.
func Edit(ctx context.Context, resource dynamic.ResourceInterface, name string, path []string, values []any) error {
	err := errNoOther
	for _, value := range values[:min(len(values), maxTries)] {
		if err = set(ctx, resource, name, path, value); !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			return err
		}
	}
	return fmt.Errorf("field %s: %w", strings.Join(path, "."), err)
}

// maxTries limits how many other values are tried for a field.
const maxTries = 8

var errNoOther = errors.New("no other valid value was found")

// set changes one field of an object.
func set(ctx context.Context, resource dynamic.ResourceInterface, name string, path []string, value any) error {
	patch := map[string]any{}
	if err := unstructured.SetNestedField(patch, value, path...); err != nil {
		return err
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = resource.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: otherClient})
	return err
}

// SetFinalizer adds or removes holdFinalizer and keeps all other finalizers.
func SetFinalizer(ctx context.Context, resource dynamic.ResourceInterface, name string, add bool) error {
	for range 5 {
		object, err := resource.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		finalizers := slices.DeleteFunc(object.GetFinalizers(), func(f string) bool { return f == holdFinalizer })
		if add {
			finalizers = append(finalizers, holdFinalizer)
		}
		object.SetFinalizers(finalizers)
		if _, err = resource.Update(ctx, object, metav1.UpdateOptions{FieldManager: otherClient}); !apierrors.IsConflict(err) {
			return err
		}
	}
	return errors.New("the object kept changing")
}
