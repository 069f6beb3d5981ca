package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	usagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/usage/v1"
	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

var _ = Describe("kubectl get bucketusage", Ordered, func() {
	var (
		s         *store
		namespace string
	)
	BeforeAll(func() { s = startStore() })
	BeforeEach(func(ctx context.Context) {
		namespace = newNamespace(ctx)
		newStore(ctx, namespace, "store", s.endpoint, secretKey)
	})

	It("shows what is in the bucket at that moment", func(ctx context.Context) {
		newBucket(ctx, namespace, "photos", "store")
		s.empty(ctx)
		Expect(usageOf(namespace, "photos")).To(And(HaveField("Objects", HaveValue(BeEquivalentTo(0))), HaveField("Bytes", HaveValue(BeEquivalentTo(0)))))
		s.put(ctx, "a/one", 1500)
		s.put(ctx, "a/two words+%25", 36)
		Expect(usageOf(namespace, "photos")).To(And(HaveField("Objects", HaveValue(BeEquivalentTo(2))), HaveField("Bytes", HaveValue(BeEquivalentTo(1536)))))
		s.put(ctx, "a/two words+%25", 548)
		got := usageOf(namespace, "photos")
		Expect(got).To(And(HaveField("Objects", HaveValue(BeEquivalentTo(2))), HaveField("Bytes", HaveValue(BeEquivalentTo(2048)))))
		Expect(got).To(And(HaveField("BucketName", bucket), HaveField("Store", namespace+"/store"), HaveField("Truncated", false),
			HaveField("MeasuredAt.Time", BeTemporally("~", time.Now(), 30*time.Second)), HaveField("Labels", HaveKeyWithValue("app", "photos"))))
		Expect(strings.Fields(kubectl("get", "bu", "photos", "-n", namespace, "--no-headers"))).To(HaveExactElements(
			"photos", bucket, namespace+"/store", "2", "2.00Ki", ContainSubstring("Z")))
		Expect(kubectl("get", "bucketusages.v1.usage.storage.koboshi.dev", "-n", namespace, "-o", "yaml")).To(ContainSubstring("bytes: 2048"))
		s.empty(ctx)
		Expect(usageOf(namespace, "photos")).To(HaveField("Objects", HaveValue(BeEquivalentTo(0))))
	})

	It("reports when a count is incomplete", func(ctx context.Context) {
		newBucket(ctx, namespace, "photos", "store")
		s.empty(ctx)
		for i := range maxObjects + 5 {
			s.put(ctx, fmt.Sprint(i), 1)
		}
		Expect(usageOf(namespace, "photos")).To(And(HaveField("Objects", HaveValue(BeEquivalentTo(maxObjects))), HaveField("Truncated", true)))
		Expect(strings.Fields(kubectl("get", "bu", "photos", "-n", namespace, "--no-headers"))).To(ContainElements("20+"))
		s.empty(ctx)
	})

	It("lists broken buckets with the reason, next to working ones", func(ctx context.Context) {
		other := newNamespace(ctx)
		newStore(ctx, other, "store", s.endpoint, secretKey)
		newStore(ctx, namespace, "wrong", s.endpoint, wrongSecret)
		newStore(ctx, namespace, "down", "http://127.0.0.1:1", secretKey)
		newStore(ctx, namespace, "metadata", "http://169.254.169.254", secretKey)
		newBucket(ctx, namespace, "a-good", "store")
		newBucket(ctx, namespace, "b-gone", "store", func(b *storagev1.StorageBucketSpec) { b.BucketName = "no-such-bucket" })
		newBucket(ctx, namespace, "c-wrong", "wrong")
		newBucket(ctx, namespace, "d-denied", "store", func(b *storagev1.StorageBucketSpec) { b.StoreRef.Namespace = other })
		newBucket(ctx, namespace, "e-down", "down")
		newBucket(ctx, namespace, "f-missing", "missing")
		newBucket(ctx, namespace, "g-metadata", "metadata")
		newBucket(ctx, namespace, "h-inline", "", func(b *storagev1.StorageBucketSpec) {
			b.StoreRef = nil
			b.Store = &storagev1.InlineStore{Endpoint: s.endpoint, CredentialsSecretRef: storagev1.SecretReference{Name: "store"}}
		})

		var list usagev1.BucketUsageList
		Expect(json.Unmarshal([]byte(kubectl("get", "bu", "-n", namespace, "-o", "json")), &list)).To(Succeed())
		reasons := map[string]string{}
		for _, item := range list.Items {
			reasons[item.Name] = item.Reason
			Expect(item.Objects == nil).To(Equal(item.Reason != ""), item.Name)
			Expect(item.Message == "").To(Equal(item.Reason == ""), item.Name)
		}
		Expect(reasons).To(Equal(map[string]string{
			"a-good": "", "b-gone": "BucketNotFound", "c-wrong": "InvalidCredentials", "d-denied": "StoreNotAllowed",
			"e-down": "EndpointUnreachable", "f-missing": "StoreNotFound", "g-metadata": "EndpointForbidden", "h-inline": "",
		}))
		Expect(kubectl("get", "bu", "-n", namespace)).To(MatchRegexp(`(?m)^NAME +BUCKET +STORE +OBJECTS +SIZE +MEASURED +REASON`))

		By("requesting each bucket individually")
		for name, is := range map[string]func(error) bool{
			"b-gone": apierrors.IsServiceUnavailable, "c-wrong": apierrors.IsForbidden, "d-denied": apierrors.IsForbidden,
			"e-down": apierrors.IsServiceUnavailable, "f-missing": apierrors.IsServiceUnavailable, "g-metadata": apierrors.IsForbidden,
			"nobody": apierrors.IsNotFound,
		} {
			err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &usagev1.BucketUsage{})
			Expect(is(err)).To(BeTrue(), "%s: %v", name, err)
			if name != "nobody" {
				Expect(apierrors.HasStatusCause(err, metav1.CauseType(reasons[name]))).To(BeTrue(), "%s: %v", name, err)
			}
		}

		By("allowing the namespace")
		allowed := &storagev1.ObjectStore{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "store"}}
		Expect(api.Patch(ctx, allowed, client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"allowedNamespaces":[%q]}}`, namespace)))).To(Succeed())
		Expect(usageOf(namespace, "d-denied")).To(HaveField("Store", other+"/store"))
	})

	It("notices that the store is stopped and restarted", func(ctx context.Context) {
		newBucket(ctx, namespace, "photos", "store")
		usageOf(namespace, "photos")
		s.stop()
		_, err := tryKubectl("get", "bu", "photos", "-n", namespace)
		Expect(err).To(MatchError(ContainSubstring("Error from server (ServiceUnavailable)")))
		s.restart()
		usageOf(namespace, "photos")
	})

	It("supports the same selectors and paging as StorageBuckets", func(ctx context.Context) {
		for _, name := range []string{"one", "two", "three"} {
			newBucket(ctx, namespace, name, "store")
		}
		names := func(args ...string) []string {
			return strings.Fields(kubectl(append([]string{"get", "bu", "-n", namespace, "-o", "name"}, args...)...))
		}
		const prefix = "bucketusage.usage.storage.koboshi.dev/"
		Expect(names()).To(ConsistOf(prefix+"one", prefix+"two", prefix+"three"))
		Expect(names("-l", "app=two")).To(ConsistOf(prefix + "two"))
		Expect(names("-l", "app!=two")).To(ConsistOf(prefix+"one", prefix+"three"))
		Expect(names("--field-selector", "metadata.name=three")).To(ConsistOf(prefix + "three"))
		Expect(names("--chunk-size=2")).To(HaveLen(3))
		_, err := tryKubectl("get", "bu", "-n", namespace, "--field-selector", "spec.store=x")
		Expect(err).To(MatchError(ContainSubstring("BadRequest")))

		var page usagev1.BucketUsageList
		Expect(api.List(ctx, &page, client.InNamespace(namespace), client.Limit(2))).To(Succeed())
		Expect(page.Items).To(HaveLen(2))
		Expect(page.Continue).NotTo(BeEmpty())
		Expect(api.List(ctx, &page, client.InNamespace(namespace), client.Limit(2), client.Continue(page.Continue))).To(Succeed())
		Expect(page.Items).To(HaveLen(1))
		Expect(page.Continue).To(BeEmpty())
		Expect(apierrors.IsBadRequest(api.List(ctx, &page, client.InNamespace(namespace), client.Continue("nonsense")))).To(BeTrue())

		By("listing all namespaces")
		Expect(kubectl("get", "bu", "-A", "-o", "name")).To(ContainSubstring("three"))
	})
})

var _ = Describe("The aggregated API", func() {
	It("appears in the discovery with only the verbs that it supports", func(ctx context.Context) {
		resources, err := discovery.NewDiscoveryClientForConfigOrDie(cfg).ServerResourcesForGroupVersion(usagev1.GroupVersion.String())
		Expect(err).NotTo(HaveOccurred())
		Expect(resources.APIResources).To(HaveExactElements(And(
			HaveField("Name", "bucketusages"), HaveField("SingularName", "bucketusage"), HaveField("Kind", "BucketUsage"),
			HaveField("Namespaced", true), HaveField("ShortNames", HaveExactElements("bu")), HaveField("Categories", BeEmpty()),
			HaveField("Verbs", ConsistOf("get", "list")))))
	})

	It("refuses to watch and to write", func(ctx context.Context) {
		for _, r := range []struct{ method, path string }{
			{http.MethodGet, "bucketusages?watch=true"}, {http.MethodPost, "bucketusages"}, {http.MethodDelete, "bucketusages/x"},
		} {
			code := through(ctx, r.method, "/apis/usage.storage.koboshi.dev/v1/namespaces/default/"+r.path)
			Expect(code).To(Equal(http.StatusMethodNotAllowed), "%s %s", r.method, r.path)
		}
	})

	It("is documented in kubectl explain", func() {
		// Two controllers of the API server download the documentation, one for each version
		// of OpenAPI. A download that failed is tried again after a minute.
		const limit = 90 * time.Second
		Eventually(func(g Gomega) {
			out, err := tryKubectl("explain", "bucketusage")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).To(And(ContainSubstring("GROUP:      usage.storage.koboshi.dev"),
				MatchRegexp(`BucketUsage\s+reports\s+the\s+number\s+and\s+total\s+size\s+of\s+the\s+objects`), MatchRegexp(`objects\s+<integer>`), MatchRegexp(`metadata\s+<ObjectMeta>`)))
		}).WithTimeout(limit).Should(Succeed())
		Expect(kubectl("explain", "bucketusage.truncated")).To(MatchRegexp(`holds\s+at\s+least\s+as\s+many`))
		Eventually(func() (string, error) { return tryKubectl("get", "--raw", "/openapi/v2") }).WithTimeout(limit).
			Should(ContainSubstring("dev.koboshi.storage.usage.v1.BucketUsageList"))
	})

	It("serves only clients that the API server authenticates and authorizes", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		as := func(user string) error {
			_, err := tryKubectl("get", "bu", "-n", namespace, "--as", user)
			return err
		}
		Expect(as("ann")).To(MatchError(ContainSubstring(`User "ann" cannot list resource "bucketusages"`)))
		create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ann"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "storagebucket-usage-viewer"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ann"}},
		})
		Eventually(func() error { return as("ann") }).Should(Succeed())
		_, err := tryKubectl("get", "bu", "-A", "--as", "ann")
		Expect(err).To(MatchError(ContainSubstring("Forbidden")))

		By("sending requests to the usage server's own port")
		group := "/apis/usage.storage.koboshi.dev/v1/namespaces/" + namespace + "/bucketusages"
		Expect(direct(ctx, "/readyz", nil)).To(Equal(http.StatusOK))
		Expect(direct(ctx, group, nil)).To(Equal(http.StatusForbidden), "anonymous")
		Expect(direct(ctx, "/metrics", nil)).To(Equal(http.StatusForbidden), "anonymous")
		Expect(direct(ctx, "/debug/pprof/heap", nil)).NotTo(Equal(http.StatusOK))
		Expect(direct(ctx, group, http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}})).To(Equal(http.StatusForbidden), "a client that pretends to be the front proxy")
		Expect(direct(ctx, group, bearer("nonsense"))).To(Equal(http.StatusUnauthorized))
		Expect(direct(ctx, group, bearer(tokenFor(ctx, systemNamespace, account)))).To(Equal(http.StatusForbidden), "a service account without the right")
		create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "account"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "storagebucket-usage-viewer"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: systemNamespace, Name: account}},
		})
		// A refusal is cached for ten seconds.
		Eventually(func() int { return direct(ctx, group, bearer(tokenFor(ctx, systemNamespace, account))) }).Should(Equal(http.StatusOK))
	})

	It("comes with manifests the API server accepts", func(ctx context.Context) {
		for _, file := range []string{"deployment.yaml", "service.yaml"} {
			for _, object := range manifests(file) {
				object.SetName(object.GetName() + "-dry-run")
				Expect(api.Create(ctx, object, client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed())
			}
		}
	})

	It("is part of the role view, and does not block the deletion of a namespace", func(ctx context.Context) {
		needControllers(ctx)
		Eventually(func(g Gomega) {
			for _, name := range []string{"view", "edit", "admin"} {
				var role rbacv1.ClusterRole
				g.Expect(api.Get(ctx, client.ObjectKey{Name: name}, &role)).To(Succeed())
				g.Expect(role.Rules).To(ContainElement(HaveField("Resources", ConsistOf("bucketusages"))))
			}
		}).Should(Succeed())
		namespace := newNamespace(ctx)
		newBucket(ctx, namespace, "photos", "store")
		kubectl("delete", "namespace", namespace, "--wait", "--timeout=60s")
	})

	AfterEach(func() {
		Expect(server.session.ExitCode()).To(Equal(-1), "the usage server ended by itself")
		for what, text := range map[string]string{
			"the key ID is in the log":       accessKey,
			"the secret is in the log":       secretKey,
			"the wrong secret is in the log": wrongSecret,
			"a right is missing":             "system:serviceaccount:" + systemNamespace + ":" + account + `" cannot`,
			"a panic is in the log":          "panic",
		} {
			Expect(strings.Contains(string(server.session.Err.Contents()), text)).To(BeFalse(), what)
		}
	})
})

var _ = AfterSuite(func() {
	if server == nil {
		return
	}
	AddReportEntry("usage server", fmt.Sprintf("serving after %s, %d MiB resident", server.ready.Round(time.Millisecond), memory(server.session.Command.Process.Pid)))
	Eventually(server.session.Terminate()).Should(gexec.Exit(0))
})
