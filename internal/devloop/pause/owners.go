package pause

import (
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// manager is the field manager of everything that this package writes.
const manager = "koboshi-dev"

var replicasPath = fieldpath.MakePathOrDie("spec", "replicas")

// ownersOf returns the entries of the field managers that own the number of replicas. Scaling to 0
// takes the field from them.
func ownersOf(workload *unstructured.Unstructured) (owners []metav1.ManagedFieldsEntry) {
	for _, entry := range workload.GetManagedFields() {
		if set, err := fieldsOf(&entry); err == nil && set.Has(replicasPath) {
			owners = append(owners, entry)
		}
	}
	return owners
}

func fieldsOf(entry *metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return set, nil
	}
	return set, set.FromJSON(entry.FieldsV1.GetRawReader())
}

// returnFields makes the former owners of the number of replicas its owners again. Otherwise Koboshi
// would own the field: a former owner's next server-side apply could not remove it, and changing it
// would be a conflict. The server ignores changed owners in a request that changes their fields, so this
// takes a request of its own.
func returnFields(ctx context.Context, at dynamic.ResourceInterface, name string, owners []metav1.ManagedFieldsEntry) error {
	for {
		workload, err := at.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(workload.GetManagedFields(), isOurs) {
			return nil
		}
		entries, err := returned(workload.GetManagedFields(), owners)
		if err != nil {
			return err
		}
		data, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": entries, "resourceVersion": workload.GetResourceVersion()}})
		if err != nil {
			return err
		}
		if _, err := at.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: manager}); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// isOurs reports whether an entry is about what this package has written.
func isOurs(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
}

// returned returns the entries without those of this package, and with the former owners.
func returned(entries, owners []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if !isOurs(entry) {
			kept = append(kept, entry)
		}
	}
	for _, owner := range owners {
		same := func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == owner.Manager && e.Operation == owner.Operation && e.Subresource == owner.Subresource && e.APIVersion == owner.APIVersion
		}
		at := slices.IndexFunc(kept, same)
		if at < 0 { // the field was all that it owned
			at = len(kept)
			kept = append(kept, owner)
			kept[at].FieldsV1 = nil
		}
		set, err := fieldsOf(&kept[at])
		if err != nil {
			return nil, err
		}
		set.Insert(replicasPath)
		raw, err := set.ToJSON()
		if err != nil {
			return nil, err
		}
		kept[at].FieldsV1 = metav1.NewFieldsV1(string(raw))
	}
	if kept == nil {
		kept = []metav1.ManagedFieldsEntry{{}} // an empty entry means none
	}
	return kept, nil
}
