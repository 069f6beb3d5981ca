package chart

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

// cluster returns a client for the API server of the tests.
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

func TestAReleaseIsInstalledUpgradedAndRemoved(t *testing.T) {
	c, config := cluster(t)
	for _, name := range []string{namespace, "team-a"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		}}
		if err := c.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	cfg := helm(t, config)
	values := set("namespaces", []any{"team-a"}, "grafanaDashboard.enabled", true, "networkPolicy.enabled", true)
	crd := get[*apiextensionsv1.CustomResourceDefinition](t, rendered(t, values), "markdownviews.view.koboshi.dev")
	t.Cleanup(func() { removeCRD(t, c, crd) })

	install := action.NewInstall(cfg)
	install.ReleaseName, install.Namespace = release, namespace
	install.WaitStrategy = kube.HookOnlyStrategy // the plane does not run images
	if _, err := install.Run(loadChart(t), values); err != nil {
		t.Fatalf("installing: %v", err)
	}
	before := authority(t, c)

	upgrade := action.NewUpgrade(cfg)
	upgrade.Namespace, upgrade.WaitStrategy = namespace, kube.HookOnlyStrategy
	values["replicas"] = 3
	if _, err := upgrade.Run(release, loadChart(t), values); err != nil {
		t.Fatalf("upgrading: %v", err)
	}
	var d appsv1.Deployment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: release + "-controller-manager"}, &d); err != nil {
		t.Fatal(err)
	}
	if *d.Spec.Replicas != 3 {
		t.Errorf("after the upgrade there are %d replicas", *d.Spec.Replicas)
	}
	if authority(t, c) != before {
		t.Error("the upgrade replaced the certificates")
	}
	checkPod(t, c, &d)
	testRelease(t, c, cfg)

	uninstall := action.NewUninstall(cfg)
	uninstall.WaitStrategy = kube.HookOnlyStrategy
	if _, err := uninstall.Run(release); err != nil {
		t.Fatalf("uninstalling: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(&d), &d); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment still exists: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Errorf("the CRD was removed: %v", err)
	}
}

// testRelease runs `helm test`. No manager is running here, so the webhooks are removed, and
// the Pod that reads the site is reported as succeeded.
func testRelease(t *testing.T, c client.Client, cfg *action.Configuration) {
	t.Helper()
	for _, webhooks := range []client.Object{
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: release + "-mutating-webhook-configuration"}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: release + "-validating-webhook-configuration"}},
	} {
		if err := c.Delete(t.Context(), webhooks); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() {
		test := action.NewReleaseTesting(cfg)
		test.Namespace, test.Timeout = namespace, time.Minute
		_, shutdown, err := test.Run(release)
		ended <- errors.Join(err, shutdown())
	}()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: release + "-test", Namespace: namespace}}
	view := &viewv1.MarkdownView{ObjectMeta: metav1.ObjectMeta{Name: release + "-test", Namespace: "team-a"}}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatalf("waiting for the Pod of the test: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(view), view); err != nil {
		t.Errorf("the Pod is created before the site that it reads: %v", err)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if err := c.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("testing: %v", err)
	}
	for _, o := range []client.Object{pod, view} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("after the test %T still exists: %v", o, err)
		}
	}
}

// checkPod checks that a restricted namespace admits the Pods of the Deployment.
func checkPod(t *testing.T, c client.Client, d *appsv1.Deployment) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: d.Name + "-", Namespace: namespace, Labels: d.Spec.Template.Labels},
		Spec:       *d.Spec.Template.Spec.DeepCopy(),
	}
	if err := c.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Errorf("the manager's Pod is refused: %v", err)
	}
}

// authority returns the certificate authorities of the webhook and of the metrics.
func authority(t *testing.T, c client.Client) string {
	t.Helper()
	all := ""
	for _, what := range []string{"webhook", "metrics"} {
		var secret corev1.Secret
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: release + "-" + what + "-self-signed"}, &secret); err != nil {
			t.Fatal(err)
		}
		all += string(secret.Data["ca.crt"])
	}
	return all
}

func removeCRD(t *testing.T, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if err := client.IgnoreNotFound(c.Delete(context.Background(), crd)); err != nil {
		t.Errorf("deleting the CRD: %v", err)
	}
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("waiting until the CRD is gone: %v", err)
	}
}

// helm returns a Helm configuration that is connected to the API server.
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
