package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Prepare applies the given objects in order. It retries requests until ctx ends (see
// persist), so ctx should have a deadline.
func (s *Scenario) Prepare(ctx context.Context, c Cluster) error {
	if err := c.applyAll(ctx, s.Given); err != nil {
		return fmt.Errorf("scenario %s: given: %w", s.Name, err)
	}
	return nil
}

// Do performs the step without waiting for its effects, not even for a deletion to
// complete. Like Prepare, it retries requests.
func (st *Step) Do(ctx context.Context, c Cluster) error {
	if err := st.do(ctx, c); err != nil {
		return fmt.Errorf("step %q: %w", st.Name, err)
	}
	return nil
}

func (st *Step) do(ctx context.Context, c Cluster) error {
	switch {
	case st.Apply != nil:
		return c.applyAll(ctx, st.Apply)
	case st.Patch != nil:
		return c.patch(ctx, st.Patch)
	case st.Delete != nil:
		return c.delete(ctx, st.Delete)
	case st.Scale != nil:
		return c.scale(ctx, st.Scale)
	case st.PodHealth != "":
		return c.setHealth(ctx, st.PodHealth)
	case st.Run != nil:
		_, err := c.run(ctx, c.Dir, st.Run)
		return err
	}
	return nil
}

// Refused reports whether the server understood the request but rejected it in validation
// or admission, in which case a retry does not help.
func Refused(err error) bool {
	if err == nil {
		return false
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsMethodNotSupported(err) || strings.Contains(err.Error(), untyped)
}

// untyped is part of the server's message if the type of an applied value differs from the
// schema. The status code, 500, does not identify this error.
const untyped = "failed to create typed patch object"

func (c Cluster) applyAll(ctx context.Context, manifests []Manifest) error {
	for _, m := range manifests {
		objects, err := m.objects()
		if err != nil {
			return err
		}
		for _, o := range objects {
			if err := c.apply(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply applies o, and may modify it, because o is a copy.
func (c Cluster) apply(ctx context.Context, o map[string]any) error {
	object := &unstructured.Unstructured{Object: c.substituteIn(o).(map[string]any)}
	ref := refOf(object.Object)
	return persist(ctx, "apply "+ref.String(), func() error {
		resource, err := c.resource(&ref)
		if err != nil {
			return err
		}
		object.SetNamespace(ref.Namespace)
		_, err = resource.Apply(ctx, ref.Name, object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		return err
	})
}

func (c Cluster) patch(ctx context.Context, p *Patch) error {
	kind, data := types.MergePatchType, p.Merge
	if p.JSON != nil {
		kind, data = types.JSONPatchType, p.JSON
	}
	return c.send(ctx, "patch", p.ObjectRef, kind, c.substituteJSON(data), p.Subresource)
}

func (c Cluster) scale(ctx context.Context, s *Scale) error {
	data := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, s.Replicas)
	return c.send(ctx, "scale", s.ObjectRef, types.MergePatchType, data, "scale")
}

func (c Cluster) send(ctx context.Context, verb string, ref ObjectRef, kind types.PatchType, data []byte, subresource string) error {
	var subresources []string
	if subresource != "" {
		subresources = []string{subresource}
	}
	return persist(ctx, verb+" "+ref.String(), func() error {
		resource, err := c.resource(&ref)
		if err != nil {
			return err
		}
		_, err = resource.Patch(ctx, ref.Name, kind, data, metav1.PatchOptions{FieldManager: fieldManager}, subresources...)
		return err
	})
}

// delete accepts NotFound on a retry, because the answer to the first request may
// have been lost.
func (c Cluster) delete(ctx context.Context, d *Delete) error {
	options := metav1.DeleteOptions{}
	if d.Propagation != "" {
		policy := metav1.DeletionPropagation(d.Propagation)
		options.PropagationPolicy = &policy
	}
	ref, tried := d.ObjectRef, 0
	return persist(ctx, "delete "+ref.String(), func() error {
		tried++
		resource, err := c.resource(&ref)
		if err != nil {
			return err
		}
		err = resource.Delete(ctx, ref.Name, options)
		if apierrors.IsNotFound(err) && tried > 1 {
			return nil
		}
		return err
	})
}

// get returns the object, or nil if it does not exist.
func (c Cluster) get(ctx context.Context, ref ObjectRef) (map[string]any, error) {
	resource, err := c.resource(&ref)
	if err != nil {
		return nil, err
	}
	object, err := resource.Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return object.Object, nil
}

// remains describes the state of an object that should be gone.
func remains(object map[string]any) string {
	u := unstructured.Unstructured{Object: object}
	switch finalizers := u.GetFinalizers(); {
	case u.GetDeletionTimestamp() == nil:
		return "exists, and its deletion was not requested"
	case len(finalizers) > 0:
		return "is being deleted, but still has the finalizers " + strings.Join(finalizers, ", ")
	}
	return "is being deleted"
}

// quote returns value as JSON, truncated to fit on a line.
func quote(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	const most = 120
	if len(data) > most {
		return strings.ToValidUTF8(string(data[:most]), "") + "…"
	}
	return string(data)
}
