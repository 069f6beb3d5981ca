package measure

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// widgets is the custom resource that all measures write.
var widgets = schema.GroupVersionResource{Group: "bench.koboshi.dev", Version: "v1", Resource: "widgets"}

// widgetCRD returns a new object each time, because envtest modifies its input.
func widgetCRD() *apiextensionsv1.CustomResourceDefinition {
	one := 1.0
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: widgets.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgets.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: widgets.Resource, Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: widgets.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {
							Type:     "object",
							Required: []string{"size"},
							Properties: map[string]apiextensionsv1.JSONSchemaProps{
								"size":  {Type: "integer", Minimum: &one},
								"owner": {Type: "string"},
							},
						},
					},
				}},
			}},
		},
	}
}

func widget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": widgets.GroupVersion().String(),
		"kind":       "Widget",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"size": int64(3), "owner": "the benchmark"},
	}}
}

func installWidgets(config *rest.Config) error {
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetCRD()}})
	if err != nil {
		return fmt.Errorf("installing the CRD: %w", err)
	}
	return nil
}

// A shelf is a client for the widgets in the default namespace.
type shelf struct{ dynamic.ResourceInterface }

func openShelf(config *rest.Config) (shelf, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return shelf{}, fmt.Errorf("creating a client: %w", err)
	}
	return shelf{client.Resource(widgets).Namespace(metav1.NamespaceDefault)}, nil
}

func (s shelf) put(ctx context.Context, name string) error {
	if _, err := s.Create(ctx, widget(name), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating widget %s: %w", name, err)
	}
	return nil
}
