package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/overrides"
)

var _ = Describe("Settings that the platform team does not allow", func() {
	It("are ignored and reported, even without the webhooks, while the site is served and can be edited", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site", func(s *viewv1.MarkdownViewSpec) {
			s.Pod = &viewv1.PodSettings{Labels: map[string]string{"app": "shop"}, PriorityClassName: "system-cluster-critical"}
			s.Ingress = &viewv1.IngressSettings{Host: "example.org", Annotations: map[string]string{
				"cert-manager.io/issuer": "x", "nginx.ingress.kubernetes.io/server-snippet": "y",
			}}
		})
		create(ctx, v)
		policy, err := overrides.Parse("ingress.annotations=cert-manager.io/*")
		Expect(err).NotTo(HaveOccurred())
		w.run(func(o *Options) { o.Overrides = policy })
		got := eventually(ctx, v, viewv1.ConditionDegraded, "True OverrideNotAllowed")
		Expect(message(got, viewv1.ConditionDegraded)).To(And(
			ContainSubstring("spec.pod.labels[app]"), ContainSubstring("spec.pod.priorityClassName"),
			ContainSubstring("spec.ingress.annotations[nginx.ingress.kubernetes.io/server-snippet]"),
			ContainSubstring("--author-overrides"), Not(ContainSubstring("cert-manager"))))
		eventuallyReady(ctx, v)
		template := childOf(ctx, v, &appsv1.Deployment{}).Spec.Template
		Expect(template.Labels).NotTo(HaveKey("app"))
		Expect(template.Spec.PriorityClassName).To(BeEmpty())
		Expect(childOf(ctx, v, &networkingv1.Ingress{}).Annotations).To(And(
			HaveKey("cert-manager.io/issuer"), Not(HaveKey("nginx.ingress.kubernetes.io/server-snippet"))))
		edit(ctx, v, "# Other\n")
		settle(ctx, w, v)
	})
})
