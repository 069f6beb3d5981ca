package e2e

import (
	"context"
	"net"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	convertedCRD = "storagebuckets.storage.koboshi.dev"
	certSecret   = "webhook-server-cert"
	hookService  = "webhook-service"
)

var _ = Describe("A manager that makes its own certificate", func() {
	It("serves the conversion webhook with a certificate that the API server trusts", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		b := newBucket(namespace, "photos", time.Minute)
		Expect(api.Create(ctx, b)).To(Succeed())
		_, port, err := net.SplitHostPort(freeAddress())
		Expect(err).NotTo(HaveOccurred())
		callWebhook(ctx, namespace, port)
		create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: certSecret}})

		old := &unstructured.Unstructured{}
		old.SetGroupVersionKind(schema.GroupVersionKind{Group: "storage.koboshi.dev", Version: "v1alpha1", Kind: "StorageBucket"})
		Expect(api.Get(ctx, client.ObjectKeyFromObject(b), old)).To(MatchError(ContainSubstring("conversion webhook")))

		startManager(grantCertificate(ctx, namespace), []string{namespace}, "--webhook-port="+port,
			"--webhook-self-signed-secret="+namespace+"/"+certSecret, "--webhook-service="+hookService,
			"--webhook-configurations=conversion/"+convertedCRD)
		Eventually(func() error { return api.Get(ctx, client.ObjectKeyFromObject(b), old) }).Should(Succeed())
	})
})

// callWebhook makes the API server convert StorageBuckets with a webhook on this machine, until the
// end of the spec. Other specs do not notice, because they use only the stored version.
func callWebhook(ctx context.Context, namespace, port string) {
	GinkgoHelper()
	create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: hookService},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	})
	number, err := strconv.ParseInt(port, 10, 32)
	Expect(err).NotTo(HaveOccurred())
	setConversion(ctx, &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
				Namespace: namespace, Name: hookService, Path: new("/convert"), Port: new(int32(number)),
			}},
		},
	})
	DeferCleanup(func(ctx context.Context) {
		setConversion(ctx, &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter})
	})
}

func setConversion(ctx context.Context, conversion *apiextensionsv1.CustomResourceConversion) {
	GinkgoHelper()
	Eventually(func() error {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := api.Get(ctx, client.ObjectKey{Name: convertedCRD}, &crd); err != nil {
			return err
		}
		crd.Spec.Conversion = conversion
		return api.Update(ctx, &crd)
	}).Should(Succeed())
}

// grantCertificate grants the shipped rights of a manager, and those that koboshi ship --certificates
// self-signed adds. It returns a token.
func grantCertificate(ctx context.Context, namespace string) string {
	GinkgoHelper()
	token := grantManager(ctx, namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manager"}}
	for name, rule := range map[string]rbacv1.PolicyRule{
		"certificate": {APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{certSecret}, Verbs: []string{"get", "update"}},
		"authority": {
			APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{"customresourcedefinitions"},
			ResourceNames: []string{convertedCRD}, Verbs: []string{"get", "patch"},
		},
	} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name}, Rules: []rbacv1.PolicyRule{rule}}
		create(ctx, role)
		if name == "certificate" {
			bind(ctx, namespace, role, account)
		} else {
			bind(ctx, "", role, account)
		}
	}
	return token
}
