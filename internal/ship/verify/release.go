package verify

import (
	"fmt"
	"maps"
	"slices"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/deploy/order"
	"github.com/koboshi-dev/koboshi/internal/helmchart"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

// hook is the annotation of objects that Helm creates only at certain moments of a release.
const hook = "helm.sh/hook"

// Release returns the objects that Helm installs for a chart in a folder, with the chart's own values,
// and the namespace of the release, as with --create-namespace. It omits hooks.
func Release(folder, name, namespace string) ([]unstructured.Unstructured, error) {
	c, err := loader.Load(folder)
	if err != nil {
		return nil, fmt.Errorf("loading the chart in %s: %w", folder, err)
	}
	texts, err := helmchart.Render(c, nil, name, namespace, kubeversion.Version)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart in %s: %w", folder, err)
	}
	for _, crd := range c.CRDObjects() {
		texts[crd.Filename] = string(crd.File.Data)
	}
	created := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	created.SetName(namespace)
	objects := []unstructured.Unstructured{created}
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		more, err := order.Parse(file, []byte(texts[file]))
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	return slices.DeleteFunc(objects, func(u unstructured.Unstructured) bool { return u.GetAnnotations()[hook] != "" }), nil
}
