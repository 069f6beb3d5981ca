package pause

import (
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}

// unmark removes the annotation from the ReplicaSets of a Deployment. The Deployment controller
// copies annotations to them, but never removes one, and a rollback would copy it back. A user who
// may not list or change ReplicaSets has to live with that.
func unmark(ctx context.Context, client dynamic.Interface, workload *unstructured.Unstructured) error {
	if workload.GetKind() != "Deployment" {
		return nil
	}
	selector, err := selectorOf(workload)
	if err != nil {
		return err
	}
	at := client.Resource(replicaSets).Namespace(workload.GetNamespace())
	list, err := at.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return unlessForbidden(err)
	}
	remove, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{Annotation: nil}}})
	if err != nil {
		return err
	}
	for _, set := range list.Items {
		owned := slices.ContainsFunc(set.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == workload.GetUID() })
		if _, marked := set.GetAnnotations()[Annotation]; !marked || !owned {
			continue
		}
		_, err := at.Patch(ctx, set.GetName(), types.MergePatchType, remove, metav1.PatchOptions{FieldManager: manager})
		if err != nil && !apierrors.IsNotFound(err) {
			return unlessForbidden(err)
		}
	}
	return nil
}

func unlessForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
