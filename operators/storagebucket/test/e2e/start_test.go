package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/e2e/rig"
)

var _ = Describe("A manager that starts before its CRDs", func() {
	It("waits for them, and then works", func(ctx context.Context) {
		crds := envtest.CRDInstallOptions{Paths: []string{rig.FromRoot("config", "crd", "bases")}, ErrorIfPathMissing: true}
		install := func() {
			GinkgoHelper()
			_, err := envtest.InstallCRDs(cfg, crds)
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(envtest.UninstallCRDs(cfg, crds)).To(Succeed())
		DeferCleanup(install) // also if this spec fails: the other specs need the CRDs
		for _, resource := range []string{"objectstores", "storagebuckets"} {
			key := client.ObjectKey{Name: resource + ".storage.koboshi.dev"}
			Eventually(func() bool {
				return apierrors.IsNotFound(api.Get(ctx, key, &apiextensionsv1.CustomResourceDefinition{}))
			}).Should(BeTrue())
		}

		namespace := newNamespace(ctx)
		s := startStore()
		m := startManager(grantManager(ctx, namespace), []string{namespace})
		Eventually(m.Err).Should(gbytes.Say("waiting for the CRDs"))
		install()

		Expect(s.MakeBucket(ctx, "photos")).To(Succeed())
		b := newInlineBucket(namespace, s.Endpoint, "photos", time.Second)
		Expect(api.Create(ctx, goodSecret(namespace))).To(Succeed())
		Expect(api.Create(ctx, b)).To(Succeed())
		Eventually(healthy(ctx, b)).Should(Equal("True ProbeSucceeded"))
	})
})
