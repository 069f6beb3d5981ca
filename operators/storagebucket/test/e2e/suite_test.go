// Package e2e runs the shipped manager, with its shipped rights for one namespace, against
// a real S3 server. The tests stop, kill and restart the S3 server.
//
// The programs are bin/manager and bin/s3server (make build s3server), or
// those that MANAGER and S3SERVER name. The control plane comes from envtest,
// as in the controller's test suite.
package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/e2e/rig"
)

// These secrets, like the root key pair, must not appear anywhere in logs or objects.
const (
	wrongSecret = "not-the-secret"
	unknownKey  = "NOBODYSKEY"
	notifyToken = "e2e-notify-token-of-nobodys-business"
)

var (
	scheme = runtime.NewScheme()
	cfg    *rest.Config
	api    client.Client
)

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "StorageBucket end to end")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter)))

	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(storagev1.AddToScheme(scheme)).To(Succeed())
	Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{rig.FromRoot("config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	var err error
	cfg, err = env.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	api, err = client.New(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})

// newNamespace creates a namespace, and empties it at the end of the spec.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "stb-e2e-"}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		// The manager has ended by now, and nothing else removes finalizers.
		for _, o := range objectsIn(ctx, ns.Name) {
			before, ok := o.DeepCopyObject().(client.Object)
			Expect(ok).To(BeTrue())
			o.SetFinalizers(nil)
			Expect(client.IgnoreNotFound(api.Patch(ctx, o, client.MergeFrom(before)))).To(Succeed())
			Expect(client.IgnoreNotFound(api.Delete(ctx, o))).To(Succeed())
		}
		Expect(api.Delete(ctx, ns)).To(Succeed())
	})
	return ns.Name
}

// objectsIn returns all StorageBuckets and ObjectStores in a namespace.
func objectsIn(ctx context.Context, namespace string) []client.Object {
	GinkgoHelper()
	var buckets storagev1.StorageBucketList
	var stores storagev1.ObjectStoreList
	Expect(api.List(ctx, &buckets, client.InNamespace(namespace))).To(Succeed())
	Expect(api.List(ctx, &stores, client.InNamespace(namespace))).To(Succeed())
	var all []client.Object
	for i := range buckets.Items {
		all = append(all, &buckets.Items[i])
	}
	for i := range stores.Items {
		all = append(all, &stores.Items[i])
	}
	return all
}
