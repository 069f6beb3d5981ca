package install

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// A cluster has these kinds only with cert-manager or Prometheus Operator, so the control
// plane of the tests does not have them.
var foreign = []string{"Certificate", "Issuer", "ServiceMonitor", "PrometheusRule"}

// cluster returns a client of the tests' API server, and its configuration.
func cluster(t *testing.T) (client.Client, *rest.Config) {
	t.Helper()
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("there is no API server: run this with hack/with-koboshi.sh")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c, config
}

// remove deletes objects, and waits until the CRDs are gone.
func remove(t *testing.T, c client.Client, in objects) {
	t.Helper()
	for key, object := range in {
		if crd, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok {
			waitUntilServed(t, c, crd)
		}
		if foreignKind(object) {
			continue
		}
		if err := client.IgnoreNotFound(c.Delete(context.Background(), object)); err != nil {
			t.Errorf("deleting %s: %v", key, err)
		}
	}
	for key, object := range in {
		crd, ok := object.(*apiextensionsv1.CustomResourceDefinition)
		if !ok {
			continue
		}
		if err := poll(func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}); err != nil {
			t.Errorf("waiting for %s to go: %v; its conditions: %v", key, err, crd.Status.Conditions)
		}
	}
}

// waitUntilServed waits until the objects of a CRD can be listed. When the API server
// deletes a CRD, it lists the objects of that CRD. If listing fails because the CRD is new,
// the API server does not retry within a minute.
func waitUntilServed(t *testing.T, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: "v1", Kind: crd.Spec.Names.ListKind})
	if err := poll(func(ctx context.Context) (bool, error) {
		return c.List(ctx, list) == nil, nil
	}); err != nil {
		t.Errorf("waiting for %s to be served: %v", crd.Name, err)
	}
}

func poll(condition wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, time.Minute, true, condition)
}

func foreignKind(object client.Object) bool {
	return slices.Contains(foreign, object.GetObjectKind().GroupVersionKind().Kind)
}

// makeNamespaces creates the operator's namespace, in which only restricted
// Pods may run, and the namespaces that it watches.
func makeNamespaces(t *testing.T, c client.Client) {
	t.Helper()
	for _, name := range []string{namespace, "team-a", "team-b"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		}}
		if err := c.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

func TestAnAPIServerTakesWhatIsInstalled(t *testing.T) {
	c, _ := cluster(t)
	for _, tc := range []struct {
		name    string
		objects func() objects
	}{
		{"kustomize", func() objects { return kustomization(t, []string{"default", "usage"}, components...) }},
		{"kustomize for one namespace", func() objects { return kustomization(t, []string{"default", "usage"}, "namespaced") }},
		{"chart with everything", func() objects { return rendered(t, everything()) }},
		{"chart with all flags", func() objects { return rendered(t, allFlags()) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := tc.objects()
			makeNamespaces(t, c)
			in = installed(in)
			delete(in, "Namespace/"+namespace)
			t.Cleanup(func() { remove(t, c, in) })
			applied := 0
			for key, object := range in {
				if foreignKind(object) {
					continue
				}
				err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(generic(t, object)),
					client.FieldOwner("install-test"), client.ForceOwnership)
				if err != nil {
					t.Errorf("%s: %v", key, err)
				}
				applied++
			}
			if applied < 15 {
				t.Errorf("only %d objects were applied", applied)
			}
			deployments := 0
			for _, object := range in {
				if d, ok := object.(*appsv1.Deployment); ok {
					deployments++
					checkPodSecurity(t, c, d)
				}
			}
			if deployments == 0 {
				t.Error("there is no Deployment")
			}
		})
	}
}

// checkPodSecurity sends two Pods to the API server, in a restricted namespace:
// one as the Deployment creates it, and one that must be refused.
func checkPodSecurity(t *testing.T, c client.Client, d *appsv1.Deployment) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: d.Name + "-", Namespace: namespace, Labels: d.Spec.Template.Labels},
		Spec:       *d.Spec.Template.Spec.DeepCopy(),
	}
	if err := c.Create(t.Context(), pod.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("%s: its Pod is refused: %v", d.Name, err)
	}
	pod.Spec.Containers[0].SecurityContext.Capabilities = nil
	if err := c.Create(t.Context(), pod, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "restricted") {
		t.Errorf("%s: a Pod with capabilities is not refused: %v", d.Name, err)
	}
}

func TestAReleaseIsInstalledUpgradedAndRemoved(t *testing.T) {
	c, config := cluster(t)
	makeNamespaces(t, c)
	cfg := helm(t, config)
	values := set("usage.enabled", true, "notify.enabled", true)

	install := action.NewInstall(cfg)
	install.ReleaseName, install.Namespace = release, namespace
	install.WaitStrategy = kube.HookOnlyStrategy // no Pods run here
	crds := rendered(t, values)
	for key, object := range crds {
		if _, ok := object.(*apiextensionsv1.CustomResourceDefinition); !ok {
			delete(crds, key)
		}
	}
	t.Cleanup(func() { remove(t, c, crds) })
	if _, err := install.Run(loadChart(t), values); err != nil {
		t.Fatalf("installing: %v", err)
	}
	before := certificates(t, c)

	upgrade := action.NewUpgrade(cfg)
	upgrade.Namespace, upgrade.WaitStrategy = namespace, kube.HookOnlyStrategy
	values["replicas"] = 2
	if _, err := upgrade.Run(release, loadChart(t), values); err != nil {
		t.Fatalf("upgrading: %v", err)
	}
	var d appsv1.Deployment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: release + "-controller-manager"}, &d); err != nil {
		t.Fatal(err)
	}
	if *d.Spec.Replicas != 2 {
		t.Errorf("after the upgrade there are %d replicas", *d.Spec.Replicas)
	}
	if diff := cmp.Diff(before, certificates(t, c)); diff != "" {
		t.Error("the upgrade replaced certificates")
	}

	testRelease(t, c, cfg)

	uninstall := action.NewUninstall(cfg)
	uninstall.WaitStrategy = kube.HookOnlyStrategy
	if _, err := uninstall.Run(release); err != nil {
		t.Fatalf("uninstalling: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(&d), &d); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment is still there: %v", err)
	}
	for key, crd := range crds {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			t.Errorf("%s was not kept: %v", key, err)
		}
	}

	again := action.NewInstall(cfg)
	again.ReleaseName, again.Namespace, again.WaitStrategy = release, namespace, kube.HookOnlyStrategy
	if _, err := again.Run(loadChart(t), values); err != nil {
		t.Errorf("installing although the CRDs already exist: %v", err)
	}
	last := action.NewUninstall(cfg)
	last.WaitStrategy = kube.HookOnlyStrategy
	if _, err := last.Run(release); err != nil {
		t.Errorf("uninstalling again: %v", err)
	}
}

// testRelease runs `helm test`. No Pods run here, so testRelease itself reports that the
// Pod that awaits the manager has succeeded.
func testRelease(t *testing.T, c client.Client, cfg *action.Configuration) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		test := action.NewReleaseTesting(cfg)
		test.Namespace, test.Timeout = namespace, time.Minute
		_, shutdown, err := test.Run(release)
		ended <- errors.Join(err, shutdown())
	}()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: release + "-test", Namespace: namespace}}
	bucket := &storagev1.StorageBucket{ObjectMeta: metav1.ObjectMeta{Name: release + "-test", Namespace: namespace}}
	if err := poll(func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil, client.IgnoreNotFound(err)
	}); err != nil {
		t.Fatalf("waiting for the Pod of the test: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(bucket), bucket); err != nil {
		t.Errorf("the Pod is created before the StorageBucket that it awaits: %v", err)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if err := c.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("testing: %v", err)
	}
	for _, o := range []client.Object{pod, bucket} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("after the test %T still exists: %v", o, err)
		}
	}
}

// certificates returns the contents of all Secrets with certificates that the API server
// and the operator use to trust each other.
func certificates(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, what := range []string{"webhook", "metrics", "usage", "notify"} {
		var secret corev1.Secret
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: release + "-" + what + "-self-signed"}, &secret); err != nil {
			t.Fatal(err)
		}
		for key, value := range secret.Data {
			all[what+"/"+key] = string(value)
		}
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := c.Get(t.Context(), client.ObjectKey{Name: "storagebuckets.storage.koboshi.dev"}, &crd); err != nil {
		t.Fatal(err)
	}
	var api apiregistrationv1.APIService
	if err := c.Get(t.Context(), client.ObjectKey{Name: "v1.usage.storage.koboshi.dev"}, &api); err != nil {
		t.Fatal(err)
	}
	if string(crd.Spec.Conversion.Webhook.ClientConfig.CABundle) != all["webhook/ca.crt"] || string(api.Spec.CABundle) != all["usage/ca.crt"] {
		t.Error("the API server does not trust the certificates in the Secrets")
	}
	return all
}

// helm returns Helm's configuration for the API server.
func helm(t *testing.T, config *rest.Config) *action.Configuration {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	kubeconfig := os.Getenv("KUBECONFIG")
	flags.KubeConfig = &kubeconfig
	flags.WrapConfigFn = func(*rest.Config) *rest.Config { return rest.CopyConfig(config) }
	cfg := action.NewConfiguration()
	if err := cfg.Init(flags, namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	return cfg
}
