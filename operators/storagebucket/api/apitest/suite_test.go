package apitest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
)

var (
	scheme  = runtime.NewScheme()
	cfg     *rest.Config
	api     client.WithWatch
	install envtest.CRDInstallOptions
)

var (
	bucketV1       = storagev1.GroupVersion.WithKind("StorageBucket")
	storeV1        = storagev1.GroupVersion.WithKind("ObjectStore")
	bucketV1alpha1 = storagev1alpha1.GroupVersion.WithKind("StorageBucket")
)

func TestAPI(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "StorageBucket API")
}

// envtest starts the control plane from the binaries in KUBEBUILDER_ASSETS. With
// USE_EXISTING_CLUSTER=true, the tests use the cluster in KUBECONFIG instead. The cluster must be
// on this machine, because its API server calls the conversion webhook in this process.
var _ = BeforeSuite(func(ctx context.Context) {
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))

	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	Expect(storagev1.AddToScheme(scheme)).To(Succeed())
	Expect(storagev1alpha1.AddToScheme(scheme)).To(Succeed())
	env := &envtest.Environment{
		Scheme: scheme,
		CRDInstallOptions: envtest.CRDInstallOptions{
			Scheme:             scheme,
			Paths:              []string{filepath.Join("..", "..", "config", "crd", "bases")},
			ErrorIfPathMissing: true,
		},
	}
	var err error
	cfg, err = env.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	install = env.CRDInstallOptions
	api, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	serveConversion(&env.WebhookInstallOptions)
})

// serveConversion runs the same webhook as the operator.
func serveConversion(options *envtest.WebhookInstallOptions) {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(ctrl.NewWebhookManagedBy(mgr, &storagev1.StorageBucket{}).Complete()).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
	})
	address := net.JoinHostPort(options.LocalServingHost, fmt.Sprint(options.LocalServingPort))
	Eventually(func() error {
		// The test only checks that the webhook listens; the API server verifies the
		// webhook's certificate.
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return err
		}
		return conn.Close()
	}).Should(Succeed())
}

// newNamespace creates a namespace for one spec and empties it afterwards.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "api-"}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(api.DeleteAllOf(ctx, &storagev1.StorageBucket{}, client.InNamespace(ns.Name))).To(Succeed())
		Expect(api.DeleteAllOf(ctx, &storagev1.ObjectStore{}, client.InNamespace(ns.Name))).To(Succeed())
		Expect(api.Delete(ctx, ns)).To(Succeed())
	})
	return ns.Name
}

// fields maps paths in a spec to values that replace the values of a base; nil removes
// the field.
type fields map[string]any

// object returns an object with the fields of all layers in its spec. A field in a later layer
// replaces the same field of an earlier layer.
func object(gvk schema.GroupVersionKind, namespace, name string, layers ...fields) *unstructured.Unstructured {
	GinkgoHelper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(namespace)
	u.SetName(name)
	for _, layer := range layers {
		set(u, layer)
	}
	return u
}

func set(u *unstructured.Unstructured, layer fields) {
	GinkgoHelper()
	for path, value := range layer {
		at := append([]string{"spec"}, strings.Split(path, ".")...)
		unstructured.RemoveNestedField(u.Object, at...)
		if value != nil {
			Expect(unstructured.SetNestedField(u.Object, runtime.DeepCopyJSONValue(value), at...)).To(Succeed())
		}
	}
}

// refusals returns the API server's objections to an object, one per line, each
// with the path of the field and the original text.
func refusals(err error) string {
	GinkgoHelper()
	Expect(err).To(HaveOccurred(), "it was accepted")
	var status apierrors.APIStatus
	Expect(err).To(BeAssignableToTypeOf(&apierrors.StatusError{}))
	status = err.(*apierrors.StatusError)
	var lines []string
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Field == "<nil>" {
				continue // a note that the API server could not check everything
			}
			lines = append(lines, cause.Field+": "+cause.Message)
		}
	}
	Expect(lines).NotTo(BeEmpty(), err.Error())
	return strings.Join(lines, "\n")
}
