package v1

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	postv1 "example.com/post/api/v1"
)

func greeting(name, words string) *postv1.Greeting {
	return &postv1.Greeting{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       postv1.GreetingSpec{To: "Ann", Words: words},
	}
}

var _ = Describe("Greeting webhooks", func() {
	It("fill in the usual words", func() {
		plain := greeting("plain", "")
		Expect(k8sClient.Create(ctx, plain)).To(Succeed())
		Expect(plain.Spec.Words).To(Equal("Hello,"))
	})

	It("keep the chosen words", func() {
		chosen := greeting("chosen", "Good evening,")
		Expect(k8sClient.Create(ctx, chosen)).To(Succeed())
		Expect(chosen.Spec.Words).To(Equal("Good evening,"))
	})

	It("refuse to shout", func() {
		Expect(k8sClient.Create(ctx, greeting("loud", "HEY"))).To(MatchError(ContainSubstring("does not shout")))
	})

	It("refuse to begin to shout", func() {
		calm := greeting("calm", "Hello,")
		Expect(k8sClient.Create(ctx, calm)).To(Succeed())
		calm.Spec.Words = "HELLO"
		Expect(k8sClient.Update(ctx, calm)).To(MatchError(ContainSubstring("does not shout")))
	})
})
