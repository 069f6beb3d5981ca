// Package served waits until an API server serves the kinds of CRDs.
package served

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// Within limits how long the API server may take to serve a new kind. On a loaded machine,
// several large schemas at once take more than 20 seconds.
const Within = 2 * time.Minute

const poll = 5 * time.Millisecond

// IsCRD reports whether an object is a CustomResourceDefinition.
func IsCRD(object *unstructured.Unstructured) bool {
	return object.GetKind() == "CustomResourceDefinition"
}

// Wait waits until the API server serves the kinds of the CRDs. It resets the mapper, and also
// waits until the mapper knows the kinds.
func Wait(ctx context.Context, client dynamic.Interface, mapper meta.ResettableRESTMapper, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		if err := established(ctx, client, mapper, crd); err != nil {
			return err
		}
	}
	if len(crds) == 0 {
		return nil
	}
	mapper.Reset()
	for _, crd := range crds {
		if err := discovered(ctx, mapper, crd); err != nil {
			return err
		}
	}
	return nil
}

// discovered waits until discovery lists the kind of a CRD that is established. If another CRD made
// the group version first, the API server updates its list a moment later.
func discovered(ctx context.Context, mapper meta.ResettableRESTMapper, crd *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	var versions []string
	all, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range all {
		if version, _ := v.(map[string]any); version["served"] == true {
			name, _ := version["name"].(string)
			versions = append(versions, name)
		}
	}
	err := wait.PollUntilContextTimeout(ctx, poll, Within, true, func(context.Context) (bool, error) {
		for _, version := range versions {
			_, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}, version)
			if meta.IsNoMatchError(err) {
				mapper.Reset()
				return false, nil
			}
			if err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("installing CustomResourceDefinition %s: waiting until discovery lists it: %w", crd.GetName(), err)
	}
	return nil
}

func established(ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper, crd *unstructured.Unstructured) error {
	kind := crd.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, poll, Within, true, func(ctx context.Context) (bool, error) {
		now, err := client.Resource(mapping.Resource).Get(ctx, crd.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return conditionTrue(now, "Established"), refusedNames(now)
	})
	if err != nil {
		return fmt.Errorf("installing CustomResourceDefinition %s: waiting for its condition Established: %w", crd.GetName(), err)
	}
	return nil
}

func conditionTrue(object *unstructured.Unstructured, wanted string) bool {
	_, status := condition(object, wanted)
	return status == "True"
}

func refusedNames(object *unstructured.Unstructured) error {
	if message, status := condition(object, "NamesAccepted"); status == "False" {
		return fmt.Errorf("the API server rejected the names in the CRD: %s", message)
	}
	return nil
}

func condition(object *unstructured.Unstructured, wanted string) (message, status string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == wanted {
			message, _ = c["message"].(string)
			status, _ = c["status"].(string)
		}
	}
	return message, status
}
