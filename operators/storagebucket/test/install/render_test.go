package install

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

const (
	root      = "../.."
	chartDir  = root + "/charts/storagebucket"
	release   = "storagebucket"
	namespace = "storagebucket-system"
)

// components are all components of config/ except namespaced, which changes the other
// components.
var components = []string{"prometheus", "grafana", "network-policy", "notify"}

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
		certmanagerv1.AddToScheme, monitoringv1.AddToScheme, storagev1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}()

// objects are the objects of an installation, by kind and name.
type objects map[string]client.Object

// kustomization builds a kustomization of config/ with components on top.
func kustomization(t *testing.T, resources []string, with ...string) objects {
	t.Helper()
	config, err := filepath.Abs(root + "/config")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var text strings.Builder
	list := func(title string, names []string) {
		fmt.Fprintf(&text, "%s:\n", title)
		for _, name := range names {
			relative, err := filepath.Rel(dir, filepath.Join(config, name))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "- %s\n", relative)
		}
	}
	list("resources", resources)
	list("components", with)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("building %v with %v: %v", resources, with, err)
	}
	manifest, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(manifest))
}

// rendered returns the chart with values, as `helm template` would render it.
func rendered(t *testing.T, values map[string]any) objects {
	t.Helper()
	files, err := render(t, values)
	if err != nil {
		t.Fatalf("rendering the chart: %v", err)
	}
	var manifest strings.Builder
	for name, text := range files {
		if !strings.HasSuffix(name, ".txt") {
			fmt.Fprintf(&manifest, "---\n%s\n", text)
		}
	}
	return parse(t, manifest.String())
}

func render(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	options := common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	c := loadChart(t)
	all, err := util.ToRenderValues(c, values, options, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// isHook reports whether Helm creates an object only at certain events.
func isHook(o client.Object) bool { return o.GetAnnotations()["helm.sh/hook"] != "" }

// installed returns the objects that an installation creates, which are all except hooks.
func installed(in objects) objects {
	in = maps.Clone(in)
	maps.DeleteFunc(in, func(_ string, o client.Object) bool { return isHook(o) })
	return in
}

// parse reads the objects in a manifest. It fails the test if an object has a field that
// its kind does not have.
func parse(t *testing.T, manifest string) objects {
	t.Helper()
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	found := objects{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if blank(document) {
			continue
		}
		o, gvk, err := strict.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		object := o.(client.Object)
		object.GetObjectKind().SetGroupVersionKind(*gvk)
		key := gvk.Kind + "/" + object.GetName()
		if object.GetNamespace() != "" && object.GetNamespace() != namespace {
			key += " in " + object.GetNamespace()
		}
		if found[key] != nil {
			t.Errorf("%s is defined twice", key)
		}
		found[key] = object
	}
}

// blank reports whether a document contains nothing but comments.
func blank(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

// get finds an object by kind and name.
func get[T client.Object](t *testing.T, in objects, name string) T {
	t.Helper()
	var kind T
	for key, object := range in {
		if found, ok := object.(T); ok && strings.HasSuffix(key, "/"+name) {
			return found
		}
	}
	t.Fatalf("there is no %T %s", kind, name)
	return kind
}

// generic returns an object as the API server receives it.
func generic(t *testing.T, object client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	// The manifest does not contain the status, but the conversion in Go adds an empty
	// status.
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}
}
