package v1

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

var (
	scheme = runtime.NewScheme()
	cfg    *rest.Config
	api    client.Client
)

func TestAPI(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "MarkdownView API")
}

// envtest starts the control plane from the binaries in KUBEBUILDER_ASSETS. With
// USE_EXISTING_CLUSTER=true, the tests use the cluster in KUBECONFIG instead. No webhook is
// installed, so these tests show which objects the API server itself refuses.
var _ = BeforeSuite(func(context.Context) {
	SetDefaultEventuallyTimeout(20 * time.Second)
	EnforceDefaultTimeoutsWhenUsingContexts()
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(AddToScheme(scheme)).To(Succeed())
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
	api, err = client.New(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "api-"}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(api.DeleteAllOf(ctx, &MarkdownView{}, client.InNamespace(ns.Name))).To(Succeed())
		Expect(api.Delete(ctx, ns)).To(Succeed())
	})
	return ns.Name
}

// obj is a JSON object.
type obj = map[string]any

// onePage holds the smallest site.
var onePage = obj{"a.md": "# A"}

// site returns a MarkdownView with one page and the given fields of the spec. A nil value
// removes a field.
func site(namespace string, spec obj) *unstructured.Unstructured {
	all := obj{"markdowns": onePage}
	for key, value := range spec {
		all[key] = value
		if value == nil {
			delete(all, key)
		}
	}
	u := &unstructured.Unstructured{Object: obj{"spec": runtime.DeepCopyJSONValue(all)}}
	u.SetGroupVersionKind(GroupVersion.WithKind("MarkdownView"))
	u.SetNamespace(namespace)
	u.SetName("site")
	return u
}

// refusals returns the field and the message of each cause in the API server's refusal of an
// object.
func refusals(err error) []string {
	GinkgoHelper()
	Expect(err).To(HaveOccurred(), "the object was accepted")
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	var told []string
	for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
		if cause.Field != "<nil>" {
			told = append(told, cause.Field+": "+cause.Message)
		}
	}
	return told
}

func many(n int, name func(int) string, value any) obj {
	all := obj{}
	for i := range n {
		all[name(i)] = value
	}
	return all
}

func times(n int, value any) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = runtime.DeepCopyJSONValue(value)
	}
	return all
}

func long(n int) string { return strings.Repeat("x", n) }
