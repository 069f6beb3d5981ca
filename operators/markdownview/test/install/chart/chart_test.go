// Package chart tests that the Helm chart renders, installs the same objects as config/, and
// refuses invalid values.
package chart

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

const (
	root      = "../../.."
	chartDir  = root + "/charts/markdownview"
	release   = "markdownview"
	namespace = "markdownview-system"
)

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, certmanagerv1.AddToScheme, monitoringv1.AddToScheme,
		viewv1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}()

// objects holds the objects of an installation, by kind and name.
type objects map[string]client.Object

// kustomization builds config/default with additional components.
func kustomization(t *testing.T, components ...string) objects {
	t.Helper()
	config, err := filepath.Abs(root + "/config")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	relative, err := filepath.Rel(dir, config)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "resources:\n- %s/default\ncomponents:\n", relative)
	for _, c := range components {
		fmt.Fprintf(&text, "- %s/%s\n", relative, c)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("building config/default with %v: %v", components, err)
	}
	manifest, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	in := parse(t, string(manifest))
	delete(in, "Namespace/"+namespace) // with Helm, --create-namespace creates it
	return in
}

// rendered returns the chart with values, as `helm template` renders it.
func rendered(t *testing.T, values map[string]any) objects {
	t.Helper()
	files, err := render(t, values)
	if err != nil {
		t.Fatalf("rendering the chart with %v: %v", values, err)
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
	c := loadChart(t)
	options := common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c, values, options, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

func loadChart(t *testing.T) *helmchart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// isHook reports whether Helm creates the object only at certain events.
func isHook(o client.Object) bool { return o.GetAnnotations()["helm.sh/hook"] != "" }

// installed returns the objects that an installation creates.
func installed(in objects) objects {
	in = maps.Clone(in)
	maps.DeleteFunc(in, func(_ string, o client.Object) bool { return isHook(o) })
	return in
}

// parse reads a manifest, and refuses fields that the kind does not have.
func parse(t *testing.T, manifest string) objects {
	t.Helper()
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
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
			t.Errorf("%s exists twice", key)
		}
		found[key] = object
	}
}

// blank reports whether a document has only comments.
func blank(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

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
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}
}

// set makes values from dotted paths.
func set(pairs ...any) map[string]any {
	values := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		at := values
		path := strings.Split(pairs[i].(string), ".")
		for _, key := range path[:len(path)-1] {
			if at[key] == nil {
				at[key] = map[string]any{}
			}
			at = at[key].(map[string]any)
		}
		at[path[len(path)-1]] = pairs[i+1]
	}
	return values
}

// everything returns values that turn on all parts that config/ has, with the settings of
// config/.
func everything() map[string]any {
	return set("certManager.enabled", true, "metrics.serviceMonitor.enabled", true, "prometheusRule.enabled", true,
		"grafanaDashboard.enabled", true, "networkPolicy.enabled", true,
		"metrics.scraper.serviceAccount", "prometheus-k8s")
}

// full returns the values of everything, and sets every value that becomes a flag.
func full() map[string]any {
	values := everything()
	maps.Copy(values, set(
		"namespaces", []any{"team-a", "team-b"}, "allowedViewerImages", []any{"ghcr.io/acme/*"},
		"authorOverrides", []any{"pod.labels", "ingress.annotations=cert-manager.io/*"},
		"viewer.requests", "cpu=20m,memory=64Mi", "viewer.limits", "memory=1Gi", "viewer.image", "viewer:1",
		"webhook.port", 10250, "healthProbe.port", 10251, "metrics.port", 10252,
		"maxConcurrentReconciles", 8, "contentLimit", 1000000, "progressDeadline", "1m30s",
		"log.level", "debug", "log.encoder", "console", "extraArgs", []any{"--pprof-bind-address=127.0.0.1:6060"},
		"extraEnv", []any{map[string]any{"name": "A", "value": "b"}},
		"extraVolumes", []any{map[string]any{"name": "x", "emptyDir": map[string]any{}}},
		"extraVolumeMounts", []any{map[string]any{"name": "x", "mountPath": "/x"}},
	))
	return values
}

func TestTheChartHasNothingThatLintObjectsTo(t *testing.T) {
	for name, values := range map[string]map[string]any{"default": nil, "everything": everything(), "full": full()} {
		for _, message := range lint.RunAll(chartDir, values, namespace).Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, message)
			}
		}
	}
}

func TestTheChartRendersWithAnyOfItsSwitches(t *testing.T) {
	for _, name := range []string{
		"certManager.enabled", "crds.enabled", "crds.keep", "metrics.enabled", "metrics.serviceMonitor.enabled",
		"prometheusRule.enabled", "grafanaDashboard.enabled", "rbac.aggregate", "networkPolicy.enabled",
	} {
		for _, on := range []bool{true, false} {
			rendered(t, set(name, on))
		}
	}
	rendered(t, full())
}

func TestABadValueIsNamed(t *testing.T) {
	for _, tc := range []struct {
		values map[string]any
		want   string
	}{
		{set("replica", 2), "replica"},
		{set("replicas", "two"), "/replicas"},
		{set("image.pullPolicy", "Sometimes"), "/image/pullPolicy"},
		{set("image.digest", "sha256:abc"), "/image/digest"},
		{set("image.digest", strings.Repeat("a", 64)), "/image/digest"},
		{set("namespaces", "team-a"), "/namespaces"},
		{set("namespaces", []any{"Team_A"}), "/namespaces/0"},
		{set("namespaces", []any{"a"}, "watchNamespaces", []any{"b"}), "watchNamespaces"},
		{set("authorOverrides", []any{"pod.image"}), "/authorOverrides/0"},
		{set("allowedViewerImages", []any{"a,b"}), "/allowedViewerImages/0"},
		{set("viewer.requests", "cpu"), "/viewer/requests"},
		{set("maxConcurrentReconciles", 0), "/maxConcurrentReconciles"},
		{set("progressDeadline", "5 minutes"), "/progressDeadline"},
		{set("log.level", "loud"), "/log/level"},
		{set("certManager.issuerRef", map[string]any{"kind": "ClusterIssuer"}), "/certManager/issuerRef"},
		{set("extraArgs", []any{"leader-elect=false"}), "/extraArgs/0"},
		{set("networkPolicy.enabled", "yes"), "/networkPolicy/enabled"},
		{set("webhook.port", 443), "/webhook/port"},
		{set("healthProbe.port", "8081"), "/healthProbe/port"},
		{set("metrics.port", 70000), "/metrics/port"},
		{set("webhook.port", 8443), "webhook.port and metrics.port must differ"},
	} {
		_, err := render(t, tc.values)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: error %v does not name %s", tc.values, err, tc.want)
		}
	}
}

func TestTheManagerListensOnThePortsOfTheValues(t *testing.T) {
	for _, tc := range []struct {
		values                   map[string]any
		webhook, health, metrics int32
	}{
		{nil, 9443, 8081, 8443},
		{set("webhook.port", 10250, "healthProbe.port", 10251, "metrics.port", 10252), 10250, 10251, 10252},
		{set("webhook.port", 8443, "metrics.enabled", false), 8443, 8081, 0},
	} {
		in := rendered(t, tc.values)
		c := get[*appsv1.Deployment](t, in, "markdownview-controller-manager").Spec.Template.Spec.Containers[0]
		for name, want := range map[string]int32{"webhook": tc.webhook, "health": tc.health, "metrics": tc.metrics} {
			var got int32
			if i := slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name }); i >= 0 {
				got = c.Ports[i].ContainerPort
			}
			if got != want {
				t.Errorf("%v: the port %s is %d, want %d", tc.values, name, got, want)
			}
		}
		for _, want := range []string{
			fmt.Sprintf("--webhook-port=%d", tc.webhook), fmt.Sprintf("--health-probe-bind-address=:%d", tc.health),
		} {
			if !slices.Contains(c.Args, want) {
				t.Errorf("%v: no %s in %v", tc.values, want, c.Args)
			}
		}
		if want := fmt.Sprintf("--metrics-bind-address=:%d", tc.metrics); tc.metrics != 0 && !slices.Contains(c.Args, want) {
			t.Errorf("%v: no %s in %v", tc.values, want, c.Args)
		}
		service := get[*corev1.Service](t, in, "markdownview-webhook-service").Spec.Ports[0]
		if service.Port != 443 || service.TargetPort.StrVal != "webhook" {
			t.Errorf("%v: the Service of the webhooks forwards port %d to %s", tc.values, service.Port, service.TargetPort.StrVal)
		}
	}
}

func TestAnImageIsNamedByItsTagOrItsDigest(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a1", 32)
	for _, tc := range []struct {
		values map[string]any
		want   string
	}{
		{set("image.repository", "ghcr.io/acme/mv"), "ghcr.io/acme/mv:" + loadChart(t).AppVersion()},
		{set("image.tag", "2.0"), "markdownview:2.0"},
		{set("image.digest", digest), "markdownview@" + digest},
		{set("image.tag", "2.0", "image.digest", digest), "markdownview@" + digest},
	} {
		c := get[*appsv1.Deployment](t, rendered(t, tc.values), "markdownview-controller-manager").Spec.Template.Spec.Containers[0]
		// Viewers run from the same image as the manager.
		if c.Image != tc.want || !slices.Contains(c.Args, "--viewer-image="+tc.want) {
			t.Errorf("%v: image %s, want %s, also in %v", tc.values, c.Image, tc.want, c.Args)
		}
	}
}

func TestHelmTestReadsTheSiteThatItMakes(t *testing.T) {
	for where, values := range map[string]map[string]any{
		namespace: nil,
		"team-a":  set("namespaces", []any{"team-a", "team-b"}, "nameOverride", "a.b"),
	} {
		var view *viewv1.MarkdownView
		var pod *corev1.Pod
		for key, object := range rendered(t, values) {
			if !isHook(object) {
				continue
			}
			switch o := object.(type) {
			case *viewv1.MarkdownView:
				view = o
			case *corev1.Pod:
				pod = o
			default:
				t.Errorf("%s is a hook", key)
			}
			if a := object.GetAnnotations(); a["helm.sh/hook"] != "test" || a["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
				t.Errorf("%s: %v", key, a)
			}
		}
		if view == nil || pod == nil {
			t.Fatalf("no site %v or no Pod %v", view, pod)
		}
		if view.Namespace != where || pod.Namespace != namespace {
			t.Errorf("the site is in %s, want %s; the Pod in %s", view.Namespace, where, pod.Namespace)
		}
		const weight = "helm.sh/hook-weight"
		if view.Annotations[weight] >= pod.Annotations[weight] {
			t.Errorf("the hook weight of the site is %s, which is not less than %s, the weight of the Pod that reads it", view.Annotations[weight], pod.Annotations[weight])
		}
		if want := "--await=http://viewer-" + view.Name + "." + view.Namespace + ".svc/"; !slices.Contains(pod.Spec.Containers[0].Args, want) {
			t.Errorf("no %s in %v", want, pod.Spec.Containers[0].Args)
		}
	}
	source, err := os.ReadFile(root + "/cmd/viewer/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{`"await"`, `"await-limit"`} {
		if !bytes.Contains(source, []byte(flag)) {
			t.Errorf("the viewer has no flag %s", flag)
		}
	}
}

func TestTheOldNameOfNamespacesStillWorks(t *testing.T) {
	want := rendered(t, set("certManager.enabled", true, "namespaces", []any{"team-a"}))
	got := rendered(t, set("certManager.enabled", true, "watchNamespaces", []any{"team-a"}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-namespaces +watchNamespaces:\n%.2000s", diff)
	}
	args := get[*appsv1.Deployment](t, got, "markdownview-controller-manager").Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--namespaces=team-a") {
		t.Errorf("%v", args)
	}
	for key, object := range got {
		if b, ok := object.(*rbacv1.ClusterRoleBinding); ok && b.RoleRef.Name != "markdownview-metrics-auth-role" {
			t.Errorf("%s grants %s in all namespaces", key, b.RoleRef.Name)
		}
	}
}

func TestKustomizeAndTheChartInstallTheSame(t *testing.T) {
	for _, tc := range []struct {
		name             string
		kustomize, chart objects
	}{
		{"the defaults", kustomization(t), rendered(t, set("certManager.enabled", true))},
		{"everything", kustomization(t, "prometheus", "grafana", "network-policy"), rendered(t, everything())},
		{"one namespace", kustomization(t, "namespaced"), rendered(t, set("certManager.enabled", true, "namespaces", []any{"team-a"}))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.chart = installed(tc.chart)
			// The objects are compared by name, including the ClusterRole and its
			// binding.
			if diff := cmp.Diff(slices.Sorted(maps.Keys(tc.kustomize)), slices.Sorted(maps.Keys(tc.chart))); diff != "" {
				t.Fatalf("different objects (-kustomize +chart):\n%s", diff)
			}
			for key := range tc.kustomize {
				if diff := cmp.Diff(essence(t, tc.kustomize[key]), essence(t, tc.chart[key])); diff != "" {
					t.Errorf("%s (-kustomize +chart):\n%.4000s", key, diff)
				}
			}
		})
	}
}

// essence returns an object without the parts that may differ between the ways of installing:
// labels that grant nothing, the image, and the names of the Secrets with certificates.
func essence(t *testing.T, object client.Object) map[string]any {
	t.Helper()
	object = object.DeepCopyObject().(client.Object)
	switch o := object.(type) {
	case *appsv1.Deployment:
		simplify(o)
	case *certmanagerv1.Certificate:
		o.Spec.SecretName = ""
	case *monitoringv1.ServiceMonitor:
		o.Spec.Endpoints[0].Interval = ""
		o.Spec.Endpoints[0].TLSConfig.CA.Secret.Name = ""
	}
	u := generic(t, object)
	kept := map[string]string{}
	for key, value := range u.GetLabels() {
		if strings.HasPrefix(key, "rbac.authorization.k8s.io/") {
			kept[key] = value
		}
	}
	u.SetLabels(kept)
	annotations := u.GetAnnotations()
	delete(annotations, "helm.sh/resource-policy")
	u.SetAnnotations(annotations)
	for _, path := range [][]string{{"spec", "selector"}, {"spec", "podSelector", "matchLabels"}, {"spec", "selector", "matchLabels"}} {
		if selector, ok, err := unstructured.NestedMap(u.Object, path...); ok && err == nil {
			delete(selector, "app.kubernetes.io/instance")
			if err := unstructured.SetNestedMap(u.Object, selector, path...); err != nil {
				t.Fatal(err)
			}
		}
	}
	return u.Object
}

func simplify(d *appsv1.Deployment) {
	spec := &d.Spec.Template.Spec
	for _, label := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/managed-by"} {
		delete(d.Spec.Template.Labels, label)
		for i := range spec.TopologySpreadConstraints {
			delete(spec.TopologySpreadConstraints[i].LabelSelector.MatchLabels, label)
		}
	}
	c := &spec.Containers[0]
	c.Image, c.ImagePullPolicy = "", ""
	// With config/, viewers run from the manager's image; with the chart, from any image.
	c.Args = slices.DeleteFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "--viewer-image=") })
	slices.Sort(c.Args)
	for i := range spec.Volumes {
		spec.Volumes[i].Secret.SecretName = ""
	}
}

func TestWithoutCertManagerTheCertificatesOfTheChartAreTrusted(t *testing.T) {
	in := rendered(t, set("metrics.serviceMonitor.enabled", true))
	monitor := get[*monitoringv1.ServiceMonitor](t, in, "markdownview-controller-manager-metrics-monitor").Spec.Endpoints[0].TLSConfig
	if monitor.InsecureSkipVerify != nil || monitor.CA.Secret == nil || monitor.CA.Secret.Name != "markdownview-metrics-self-signed" {
		t.Errorf("the ServiceMonitor does not verify the certificate: %+v", monitor)
	}
	webhooks := get[*admissionv1.ValidatingWebhookConfiguration](t, in, "markdownview-validating-webhook-configuration")
	metrics := get[*corev1.Secret](t, in, "markdownview-metrics-self-signed")
	for _, tc := range []struct {
		secret, host string
		authority    []byte
	}{
		{"markdownview-webhook-self-signed", "markdownview-webhook-service." + namespace + ".svc", webhooks.Webhooks[0].ClientConfig.CABundle},
		{"markdownview-metrics-self-signed", *monitor.ServerName, metrics.Data["ca.crt"]},
	} {
		secret := get[*corev1.Secret](t, in, tc.secret)
		pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
		if err != nil {
			t.Fatalf("%s: %v", tc.secret, err)
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(tc.authority)
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: tc.host}); err != nil {
			t.Errorf("%s: %v", tc.secret, err)
		}
	}
}
