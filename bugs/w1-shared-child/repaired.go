package w1

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// first lets only one site of a namespace write the settings: the one whose name comes first.
//
// RIGHT: the other sites report a conflict, and the ConfigMap keeps its owner.
func first(ctx context.Context, r *reconciler, site *Site) (bool, error) {
	var sites object.List[Spec, Status]
	if err := r.Live.List(ctx, &sites, client.InNamespace(site.Namespace)); err != nil {
		return false, err
	}
	for _, other := range sites.Items {
		if other.Name < site.Name {
			return false, nil
		}
	}
	return true, nil
}
