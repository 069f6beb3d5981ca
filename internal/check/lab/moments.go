package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// holdFinalizer is the finalizer that the simulated other client adds. Comparisons ignore it.
const holdFinalizer = state.Mark + "hold"

// otherClient is the field manager of writes by the simulated other client.
const otherClient = fault.OtherClient

// target finds the object with the canonical name in k.fault.Target.
func (k *knock) target() (*unstructured.Unstructured, dynamic.ResourceInterface, error) {
	all := k.run.lab.store.find(func(state.Ref, state.Object) bool { return true })
	found := k.run.lesson.Reference.Mask.Find(all, k.fault.Target)
	if len(found) == 0 {
		return nil, nil, fmt.Errorf("there is no %s in this run", k.fault.Target)
	}
	object := &unstructured.Unstructured{Object: all[found[0]]}
	resource, err := k.run.lab.resource(object)
	return object, resource, err
}

func deleteChild(ctx context.Context, k *knock) error {
	object, resource, err := k.target()
	if err != nil {
		return err
	}
	uid := object.GetUID()
	background := metav1.DeletePropagationBackground
	return resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{
		PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid},
	})
}

// editChild changes one field of a child object to another value that the API server
// accepts.
func editChild(ctx context.Context, k *knock) error {
	object, resource, err := k.target()
	if err != nil {
		return err
	}
	path := strings.Split(k.fault.Field, ".")
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil || !found {
		return fmt.Errorf("%s has no field %s in this run", k.fault.Target, k.fault.Field)
	}
	err = errNoOther
	others := otherValues(value)
	for _, other := range others[:min(len(others), maxTries)] {
		if err = edit(ctx, resource, object.GetName(), path, other); !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			return err
		}
	}
	return fmt.Errorf("field %s: %w", k.fault.Field, err)
}

func edit(ctx context.Context, resource dynamic.ResourceInterface, name string, path []string, value any) error {
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

// maxTries limits how many other values are tried for a field.
const maxTries = 8

var errNoOther = errors.New("no other valid value was found")

// otherValues returns different values of the same type that may be valid. It returns
// several, because a number may be at its limit, and a quantity such as 1Gi stays valid
// with a digit in front, but not with a letter at the end.
func otherValues(value any) (others []any) {
	switch v := value.(type) {
	case bool:
		return []any{!v}
	case int64:
		return []any{v + 1, v - 1}
	case float64:
		return []any{v + 1, v - 1}
	case string:
		if strings.HasPrefix(v, "hmac:") {
			return nil
		}
		return []any{v + "x", "1" + v}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			for _, other := range otherValues(v[key]) {
				others = append(others, map[string]any{key: other})
			}
		}
	}
	return others
}

// addFinalizer adds a finalizer to an object and removes it after the next step has come to
// rest.
func addFinalizer(ctx context.Context, k *knock) error {
	object, resource, err := k.target()
	if err != nil {
		return err
	}
	name := object.GetName()
	if err := setFinalizer(ctx, resource, name, true); err != nil {
		return err
	}
	k.keep(k.run.stepAfter(k.fault.Point.Step), func() {
		_ = setFinalizer(ctx, resource, name, false) // the object may be gone
	})
	return nil
}

// setFinalizer adds or removes holdFinalizer and keeps all other finalizers.
func setFinalizer(ctx context.Context, resource dynamic.ResourceInterface, name string, add bool) error {
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
