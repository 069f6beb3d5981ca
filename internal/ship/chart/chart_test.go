package chart_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/koboshi-dev/koboshi/internal/ship/chart"
)

var update = flag.Bool("update", false, "write the golden files")

// operator is one of the repository's operators.
type operator struct{ name, image, watch string }

var operators = []operator{
	{"storagebucket", "storagebucket:0.2.0", "--namespaces"},
	{"markdownview", "markdownview:0.1.0", "--namespaces"},
	{"foo", "controller:latest", ""},
}

func (o operator) namespace() string { return o.name + "-system" }

func (o operator) options() chart.Options {
	return chart.Options{Project: o.name, Image: o.image, Entrypoint: "/manager", Tag: "v1.2.0", WatchNamespaces: o.watch}
}

var (
	mu        sync.Mutex
	kustomize = map[string][]unstructured.Unstructured{}
)

// objects returns what config/default of the operator installs. Kustomize takes most of the time of
// these tests, so each operator is built once.
func (o operator) objects(t *testing.T) (objects []unstructured.Unstructured) {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	if kustomize[o.name] == nil {
		kustomize[o.name] = o.build(t)
	}
	for i := range kustomize[o.name] {
		objects = append(objects, *kustomize[o.name][i].DeepCopy())
	}
	return objects
}

func (o operator) build(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "operators", o.name, "config", "default")
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(manifest))
}

func parse(t *testing.T, manifest string) (objects []unstructured.Unstructured) {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 1<<20)
	for {
		var o unstructured.Unstructured
		switch err := decoder.Decode(&o.Object); {
		case err == io.EOF:
			return objects
		case err != nil:
			t.Fatalf("%v in:\n%s", err, manifest)
		case len(o.Object) > 0:
			objects = append(objects, o)
		}
	}
}

func made(t *testing.T, objects []unstructured.Unstructured, o chart.Options) *chart.Chart {
	t.Helper()
	c, err := chart.Make(objects, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render returns the texts of a release, as helm template has them.
func render(t *testing.T, c *chart.Chart, release, namespace string, values map[string]any) (map[string]string, error) {
	t.Helper()
	var files []*archive.BufferedFile
	for _, path := range c.Paths() {
		files = append(files, &archive.BufferedFile{Name: path, Data: c.Files[path]})
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	all, err := commonutil.ToRenderValues(loaded, values, common.ReleaseOptions{
		Name: release, Namespace: namespace, Revision: 1, IsInstall: true,
	}, common.DefaultCapabilities.Copy())
	if err != nil {
		return nil, err
	}
	return engine.Render(loaded, all)
}

// release returns the objects of a release by kind, name and namespace.
func release(t *testing.T, c *chart.Chart, name, namespace string, values map[string]any) map[string]map[string]any {
	t.Helper()
	texts, err := render(t, c, name, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	var all []unstructured.Unstructured
	for _, path := range slices.Sorted(maps.Keys(texts)) {
		if strings.HasSuffix(path, ".yaml") {
			all = append(all, parse(t, texts[path])...)
		}
	}
	return byName(t, all)
}

func byName(t *testing.T, objects []unstructured.Unstructured) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, o := range objects {
		key := strings.Trim(fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName()), "/")
		if all[key] != nil {
			t.Errorf("%s exists twice", key)
		}
		all[key] = o.Object
	}
	return all
}

// set builds values from dotted paths.
func set(pairs ...any) map[string]any {
	values := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		path, _ := pairs[i].(string)
		if err := unstructured.SetNestedField(values, pairs[i+1], strings.Split(path, ".")...); err != nil {
			panic(err)
		}
	}
	return values
}

// withoutDocumented removes what the README of a chart names as a difference from install.yaml, and
// empty fields, which mean the same as missing ones.
func withoutDocumented(objects map[string]map[string]any) {
	for _, content := range objects {
		o := unstructured.Unstructured{Object: content}
		labels := o.GetLabels()
		for _, name := range []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart"} {
			delete(labels, name)
		}
		o.SetLabels(labels)
		annotations := o.GetAnnotations()
		if o.GetKind() == "CustomResourceDefinition" {
			delete(annotations, "helm.sh/resource-policy")
		}
		o.SetAnnotations(annotations)
		prune(content)
	}
}

func prune(object map[string]any) {
	for name, value := range object {
		switch value := value.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			prune(value)
		case []any:
			if len(value) == 0 {
				delete(object, name)
			}
			for _, item := range value {
				if inner, ok := item.(map[string]any); ok {
					prune(inner)
				}
			}
		}
	}
}

func TestAReleaseNamedLikeTheChartHasTheObjectsOfInstallYAML(t *testing.T) {
	for _, o := range operators {
		objects := o.objects(t)
		c := made(t, objects, o.options())
		got := release(t, c, o.name, o.namespace(), nil)
		want := byName(t, objects)
		delete(want, "Namespace /"+o.namespace())
		withoutDocumented(got)
		withoutDocumented(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-install.yaml +release):\n%.4000s", o.name, diff)
		}
		if c.Name != o.name || c.Version != "1.2.0" {
			t.Errorf("the chart is %s %s", c.Name, c.Version)
		}
	}
}

func TestHelmLintHasNoObjections(t *testing.T) {
	for _, o := range operators {
		c := made(t, o.objects(t), o.options())
		dir := filepath.Join(t.TempDir(), c.Name)
		for path, text := range c.Files {
			at := filepath.Join(dir, path)
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for name, values := range map[string]map[string]any{"defaults": nil, "everything": everything(o)} {
			for _, message := range lint.RunAll(dir, values, "sea").Messages {
				if message.Severity > support.InfoSev {
					t.Errorf("%s with %s: %v", o.name, name, message)
				}
			}
		}
	}
}

// everything returns values that differ from all defaults.
func everything(o operator) map[string]any {
	values := set(
		"replicas", int64(3), "image.repository", "registry.example.com/mirror", "image.tag", "v9", "image.pullPolicy", "Always",
		"metrics.serviceMonitor.enabled", true, "networkPolicy.enabled", true, "crds.keep", false,
		"podLabels.team", "sea", "podAnnotations.note", "{{ none }}", "nodeSelector.disk", "fast",
		"resources.limits.memory", "1Gi", "serviceAccount.annotations.role", "reader",
		"extraArgs", []any{"--zap-log-level=debug"}, "extraEnv", []any{map[string]any{"name": "HTTPS_PROXY", "value": "http://proxy"}},
		"podDisruptionBudget.enabled", true, "podDisruptionBudget.minAvailable", "50%", "priorityClassName", "important",
		"topologySpreadConstraints", []any{map[string]any{"maxSkew": int64(2), "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}},
		"tolerations", []any{map[string]any{"operator": "Exists"}}, "imagePullSecrets", []any{map[string]any{"name": "pull"}},
	)
	if o.watch != "" {
		values["watchNamespaces"] = []any{"team-a", "team-b"}
		values["certificates"] = map[string]any{"mode": "secret", "caBundle": "Y2E="}
	}
	return values
}

// TestAReleaseWithAnotherNameSharesNothing also covers the arguments of the manager.
func TestAReleaseWithAnotherNameSharesNothing(t *testing.T) {
	for _, o := range operators {
		c := made(t, o.objects(t), o.options())
		first := release(t, c, o.name, o.namespace(), nil)
		second := release(t, c, "blue", "123", set("crds.enabled", false, "metrics.serviceMonitor.enabled", true, "networkPolicy.enabled", true))
		for key, object := range second {
			if first[key] != nil {
				t.Errorf("%s: %s is in both releases", o.name, key)
			}
			if text := fmt.Sprint(object); strings.Contains(text, o.namespace()) {
				t.Errorf("%s: %s refers to the other release: %s", o.name, key, text)
			}
		}
		checkReferences(t, o.name, second)
	}
}

// checkReferences checks that bindings and webhooks refer to objects of the release.
func checkReferences(t *testing.T, name string, objects map[string]map[string]any) {
	t.Helper()
	exists := func(kind, namespace, object string) {
		if objects[strings.Trim(kind+" "+namespace+"/"+object, "/")] == nil {
			t.Errorf("%s: there is no %s %s/%s", name, kind, namespace, object)
		}
	}
	for _, content := range objects {
		o := unstructured.Unstructured{Object: content}
		if role, ok, _ := unstructured.NestedString(content, "roleRef", "name"); ok {
			kind, _, _ := unstructured.NestedString(content, "roleRef", "kind")
			namespace := o.GetNamespace()
			if kind == "ClusterRole" {
				namespace = ""
			}
			exists(kind, namespace, role)
			exists("ServiceAccount", "123", "blue-"+name+"-controller-manager")
		}
		if account, ok, _ := unstructured.NestedString(content, "spec", "template", "spec", "serviceAccountName"); ok {
			exists("ServiceAccount", "123", account)
		}
		if issuer, ok, _ := unstructured.NestedString(content, "spec", "issuerRef", "name"); ok {
			exists("Issuer", "123", issuer)
		}
		if certificate, ok := o.GetAnnotations()["cert-manager.io/inject-ca-from"]; ok {
			namespace, certificate, _ := strings.Cut(certificate, "/")
			exists("Certificate", namespace, certificate)
		}
		webhooks, _, _ := unstructured.NestedSlice(content, "webhooks")
		for _, item := range webhooks {
			webhook, _ := item.(map[string]any)
			service, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "name")
			namespace, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "namespace")
			exists("Service", namespace, service)
		}
	}
}

func TestAMisspeltValueIsRefused(t *testing.T) {
	c := made(t, operators[0].objects(t), operators[0].options())
	for _, test := range []struct {
		values map[string]any
		want   string
	}{
		{set("replica", int64(2)), "replica"},
		{set("image.tags", "v1"), "tags"},
		{set("replicas", "two"), "/replicas"},
		{set("image.digest", "sha256:1"), "/image/digest"},
		{set("image.pullPolicy", "Sometimes"), "/image/pullPolicy"},
		{set("watchNamespaces", "team-a"), "/watchNamespaces"},
		{set("watchNamespaces", []any{"Team_A"}), "/watchNamespaces/0"},
		{set("certificates.mode", "olm"), "/certificates/mode"},
		{set("certificates.mode", "secret"), "certificates.caBundle is needed"},
		{set("crds.keep", "yes"), "/crds/keep"},
		{set("podDisruptionBudget.minAvailable", "half"), "/podDisruptionBudget/minAvailable"},
		{set("podDisruptionBudget.maxUnavailable", ""), "/podDisruptionBudget/maxUnavailable"},
		{set("podLabels.team", int64(1)), "/podLabels/team"},
	} {
		if _, err := render(t, c, "a", "b", test.values); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %s", test.values, err, test.want)
		}
	}
}

func TestTheSameObjectsGiveTheSameFiles(t *testing.T) {
	o := operators[0]
	objects := o.objects(t)
	before := fmt.Sprint(objects)
	first := made(t, objects, o.options())
	for range 3 {
		if diff := cmp.Diff(first, made(t, objects, o.options())); diff != "" {
			t.Fatal(diff)
		}
	}
	if fmt.Sprint(objects) != before {
		t.Error("the objects have changed")
	}
	a, err := first.Archive()
	if err != nil {
		t.Fatal(err)
	}
	b, err := first.Archive()
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("two archives differ, %v", err)
	}
	loaded, err := loader.LoadArchive(bytes.NewReader(a))
	if err != nil || loaded.Name() != o.name || len(loaded.Raw) != len(first.Files) {
		t.Errorf("%v, %v", loaded, err)
	}
}
