package controller

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	postv1 "example.com/post/api/v1"
)

const within = 20 * time.Second

func greeting(name, to, words string) *postv1.Greeting {
	return &postv1.Greeting{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       postv1.GreetingSpec{To: to, Words: words},
	}
}

func greetingIn(name string) func() (string, error) {
	return func() (string, error) {
		var written corev1.ConfigMap
		err := k8sClient.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &written)
		return written.Data["greeting"], err
	}
}

var _ = Describe("Greeting", func() {
	It("is written into a ConfigMap that it owns", func() {
		wanted := greeting("ann", "Ann", "Good morning,")
		Expect(k8sClient.Create(ctx, wanted)).To(Succeed())
		Eventually(greetingIn("ann"), within).Should(Equal("Good morning, Ann"))
		Eventually(func() (string, error) {
			err := k8sClient.Get(ctx, client.ObjectKeyFromObject(wanted), wanted)
			return wanted.Status.Said, err
		}, within).Should(Equal("Good morning, Ann"))

		var written corev1.ConfigMap
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(wanted), &written)).To(Succeed())
		Expect(metav1.IsControlledBy(&written, wanted)).To(BeTrue())
	})

	It("is written again when the ConfigMap is changed", func() {
		Expect(k8sClient.Create(ctx, greeting("ben", "Ben", "Hello,"))).To(Succeed())
		Eventually(greetingIn("ben"), within).Should(Equal("Hello, Ben"))
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"greeting":"Go away"}}`))
		changed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ben"}}
		Expect(k8sClient.Patch(ctx, changed, patch)).To(Succeed())
		Eventually(greetingIn("ben"), within).Should(Equal("Hello, Ben"))
	})

	It("is refused by the schema without a name to greet", func() {
		err := k8sClient.Create(ctx, greeting("nobody", "", "Hello,"))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	})

	It("stays with the ConfigMap when nothing collects garbage", func() {
		Expect(k8sClient.Create(ctx, greeting("cleo", "Cleo", "Hello,"))).To(Succeed())
		Eventually(greetingIn("cleo"), within).Should(Equal("Hello, Cleo"))
		Expect(k8sClient.Delete(ctx, greeting("cleo", "Cleo", "Hello,"))).To(Succeed())
		Consistently(greetingIn("cleo"), time.Second).Should(Equal("Hello, Cleo"))
	})
})
