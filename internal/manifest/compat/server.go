package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	namespace = "koboshi-compat"
	// serveTimeout limits how long the API server may take to serve a changed CRD.
	serveTimeout = 30 * time.Second
)

// server is the API server on which objects are tried.
type server struct {
	crds    clientset.Interface
	objects dynamic.Interface
}

// connect returns the clients, and creates the namespace of all objects.
func connect(ctx context.Context, config *rest.Config) (*server, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent = -1, "koboshi-generate"
	config.WarningHandler = rest.NoWarnings{}
	crds, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	home := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}}
	_, err = objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(ctx, home, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("creating the namespace %s: %w", namespace, err)
	}
	return &server{crds, objects}, nil
}

// install creates a CRD, or replaces its spec, and waits until the API server serves it. The
// first error is the API server's objection to the CRD.
func (s *server) install(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, stage string) (objection, err error) {
	client := s.crds.ApiextensionsV1().CustomResourceDefinitions()
	marked := crd.DeepCopy()
	marked.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	for i := range marked.Spec.Versions {
		mark(&marked.Spec.Versions[i], stage)
	}
	now, err := client.Get(ctx, crd.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = client.Create(ctx, marked, metav1.CreateOptions{})
	case err == nil:
		now.Spec = marked.Spec
		_, err = client.Update(ctx, now, metav1.UpdateOptions{})
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, s.serves(ctx, crd, stage)
}

// mark adds a printer column to a version. The API server prints the column only after it has begun
// to use this CRD; nothing else shows this reliably.
func mark(v *apiextensionsv1.CustomResourceDefinitionVersion, stage string) {
	column := apiextensionsv1.CustomResourceColumnDefinition{Name: "koboshi-" + stage, Type: "string", JSONPath: ".metadata.name"}
	v.AdditionalPrinterColumns = append([]apiextensionsv1.CustomResourceColumnDefinition{column}, v.AdditionalPrinterColumns...)
}

// serves waits until the API server uses the CRD of the stage.
func (s *server) serves(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, stage string) error {
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		url := fmt.Sprintf("/apis/%s/%s/%s", crd.Spec.Group, v.Name, crd.Spec.Names.Plural)
		err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, serveTimeout, true, func(ctx context.Context) (bool, error) {
			raw, err := s.crds.Discovery().RESTClient().Get().AbsPath(url).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
			var table metav1.Table
			if err != nil || json.Unmarshal(raw, &table) != nil {
				return false, nil // not served yet
			}
			for _, column := range table.ColumnDefinitions {
				if column.Name == "koboshi-"+stage {
					return true, nil
				}
			}
			return false, nil
		})
		if err != nil {
			return fmt.Errorf("waiting until %s is served: %w", url, err)
		}
	}
	return nil
}

// resource returns the client for the objects of a CRD in a version.
func (s *server) resource(crd *apiextensionsv1.CustomResourceDefinition, version string) dynamic.ResourceInterface {
	client := s.objects.Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: version, Resource: crd.Spec.Names.Plural})
	if crd.Spec.Scope == apiextensionsv1.ClusterScoped {
		return client
	}
	return client.Namespace(namespace)
}
