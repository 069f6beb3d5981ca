package v1

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/images"
)

const defaultImage = "ghcr.io/koboshi-dev/markdownview-viewer:v1"

var (
	scheme   = runtime.NewScheme()
	api      client.Client
	warnings = &warned{}
	hooks    *envtest.WebhookInstallOptions
)

func TestWebhooks(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "MarkdownView webhooks")
}

// envtest starts the control plane from the binaries in KUBEBUILDER_ASSETS. With
// USE_EXISTING_CLUSTER=true, the tests use the cluster in KUBECONFIG instead. The cluster
// must be on this machine, because it calls the webhooks in this process.
var _ = BeforeSuite(func(ctx context.Context) {
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))

	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(viewv1.AddToScheme(scheme)).To(Succeed())
	env := &envtest.Environment{
		Scheme: scheme,
		CRDInstallOptions: envtest.CRDInstallOptions{
			Scheme:             scheme,
			Paths:              []string{filepath.Join("..", "..", "..", "config", "crd", "bases")},
			ErrorIfPathMissing: true,
		},
	}
	hooks = &env.WebhookInstallOptions
	hooks.MutatingWebhooks, hooks.ValidatingWebhooks = configurations()
	cfg, err := env.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	config := rest.CopyConfig(cfg)
	config.WarningHandler = warnings
	api, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(removeHooks) // a cluster may outlive this process
	serve(cfg)
})

// configurations returns the configurations in config/webhook, with the patches applied.
func configurations() ([]*admissionregistrationv1.MutatingWebhookConfiguration, []*admissionregistrationv1.ValidatingWebhookConfiguration) {
	GinkgoHelper()
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	written, patches := documents("manifests.yaml"), documents("match_conditions.yaml")
	Expect(json.Unmarshal(written["MutatingWebhookConfiguration"], &mutating)).To(Succeed())
	Expect(json.Unmarshal(written["ValidatingWebhookConfiguration"], &validating)).To(Succeed())
	patch(&mutating, patches["MutatingWebhookConfiguration"])
	patch(&validating, patches["ValidatingWebhookConfiguration"])
	Expect(mutating.Webhooks).To(HaveLen(1))
	Expect(validating.Webhooks).To(HaveLen(1))
	return []*admissionregistrationv1.MutatingWebhookConfiguration{&mutating}, []*admissionregistrationv1.ValidatingWebhookConfiguration{&validating}
}

// documents returns the documents in a file as JSON, by their kind.
func documents(name string) map[string][]byte {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "webhook", name))
	Expect(err).NotTo(HaveOccurred())
	found := map[string][]byte{}
	for _, document := range strings.Split(string(data), "\n---\n") {
		var kind metav1.TypeMeta
		Expect(yaml.Unmarshal([]byte(document), &kind)).To(Succeed())
		text, err := yaml.YAMLToJSON([]byte(document))
		Expect(err).NotTo(HaveOccurred())
		found[kind.Kind] = text
	}
	return found
}

func patch[T any](object *T, with []byte) {
	GinkgoHelper()
	before, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	after, err := strategicpatch.StrategicMergePatch(before, with, *object)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(after, object)).To(Succeed())
}

// serve runs the webhooks as the operator does.
func serve(cfg *rest.Config) {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir,
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	allowed, err := images.Parse("ghcr.io/acme/*", "peaceiris/mdbook")
	Expect(err).NotTo(HaveOccurred())
	Expect(SetupWithManager(mgr, Options{DefaultImage: defaultImage, Images: allowed})).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
	})
	address := net.JoinHostPort(hooks.LocalServingHost, fmt.Sprint(hooks.LocalServingPort))
	Eventually(func() error {
		// This checks only whether the server listens; the API server verifies the certificate.
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return err
		}
		return conn.Close()
	}).Should(Succeed())
}

// removeHooks removes the webhooks, and waits until the API server no longer calls
// them.
func removeHooks(ctx context.Context) {
	GinkgoHelper()
	for _, c := range hooks.MutatingWebhooks {
		Expect(client.IgnoreNotFound(api.Delete(ctx, c.DeepCopy()))).To(Succeed())
	}
	for _, c := range hooks.ValidatingWebhooks {
		Expect(client.IgnoreNotFound(api.Delete(ctx, c.DeepCopy()))).To(Succeed())
	}
	Eventually(ctx, func() error { return tryInvalid(ctx) }).Should(Succeed())
	// The API server notices changes of the two kinds of webhook configuration
	// independently.
	Eventually(ctx, func() (string, error) { return tryPath(ctx) }).Should(Equal("/x"))
}

// restoreHooks undoes removeHooks.
func restoreHooks(ctx context.Context) {
	GinkgoHelper()
	for _, c := range hooks.MutatingWebhooks {
		created := c.DeepCopy()
		created.ResourceVersion, created.UID = "", ""
		Expect(api.Create(ctx, created)).To(Succeed())
	}
	for _, c := range hooks.ValidatingWebhooks {
		created := c.DeepCopy()
		created.ResourceVersion, created.UID = "", ""
		Expect(api.Create(ctx, created)).To(Succeed())
	}
	Eventually(ctx, func() error { return tryInvalid(ctx) }).ShouldNot(Succeed())
	Eventually(ctx, func() (string, error) { return tryPath(ctx) }).Should(Equal("/x/"))
}

// sendHooksNowhere makes the API server call an address where nothing listens, until the
// test ends.
func sendHooksNowhere(ctx context.Context) {
	GinkgoHelper()
	removeHooks(ctx)
	DeferCleanup(func(ctx context.Context) {
		removeHooks(ctx)
		restoreHooks(ctx)
	})
	nowhere := "https://127.0.0.1:1/"
	for _, c := range hooks.MutatingWebhooks {
		created := c.DeepCopy()
		created.ResourceVersion, created.UID = "", ""
		created.Webhooks[0].ClientConfig.URL = &nowhere
		Expect(api.Create(ctx, created)).To(Succeed())
	}
	for _, c := range hooks.ValidatingWebhooks {
		created := c.DeepCopy()
		created.ResourceVersion, created.UID = "", ""
		created.Webhooks[0].ClientConfig.URL = &nowhere
		Expect(api.Create(ctx, created)).To(Succeed())
	}
}

// tryInvalid tries to create an object that the webhook refuses, as a dry run.
func tryInvalid(ctx context.Context) error {
	return api.Create(ctx, view("default", map[string]string{"SUMMARY.md": "- [X](missing.md)"}), client.DryRunAll)
}

// tryPath creates an object with the base path "/x", as a dry run, and returns the base path of the
// created object, which the webhook would change.
func tryPath(ctx context.Context) (string, error) {
	v := view("default", map[string]string{"a.md": ""})
	v.Spec.BasePath = "/x"
	err := api.Create(ctx, v, client.DryRunAll)
	return v.Spec.BasePath, err
}

// view returns a MarkdownView with these pages.
func view(namespace string, markdowns map[string]string) *viewv1.MarkdownView {
	return &viewv1.MarkdownView{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "site-"},
		Spec:       viewv1.MarkdownViewSpec{Markdowns: markdowns},
	}
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "webhook-"}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(api.DeleteAllOf(ctx, &viewv1.MarkdownView{}, client.InNamespace(ns.Name))).To(Succeed())
		Expect(api.Delete(ctx, ns)).To(Succeed())
	})
	return ns.Name
}

// warned collects the warnings of the API server.
type warned struct {
	mu   sync.Mutex
	text []string
}

func (w *warned) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

// take returns the warnings since the last call.
func (w *warned) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.text
	w.text = nil
	return text
}
