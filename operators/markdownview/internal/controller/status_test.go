package controller

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

var _ = Describe("The status of a site", func() {
	It("explains that a ConfigMap may not be read, and recovers", func(ctx SpecContext) {
		w := newWorld(ctx)
		v, pages := withPages(w)
		create(ctx, pages, v)
		w.run()
		settle(ctx, w, v)
		w.journal.refuse(refuseReading(pages.Name, http.StatusForbidden))
		edit(ctx, v, "# Other\n")
		got := eventually(ctx, v, viewv1.ConditionReady, "False ReadFailed")
		Expect(message(got, viewv1.ConditionReady)).To(ContainSubstring(`ConfigMap "pages"`))
		Expect(told(got, viewv1.ConditionDegraded)).To(Equal("True ReadFailed"))
		Expect(told(got, viewv1.ConditionAvailable)).To(Equal("True OK"))
		Expect(kstatus(got)).To(Equal("InProgress"))
		w.journal.refuse(nil)
		update(ctx, pages, func(cm *corev1.ConfigMap) { cm.Data["three.md"] = "# 3\n" })
		eventuallyReady(ctx, v)
	})

	It("explains a failed read, and does not return a delay together with the error", func(ctx SpecContext) {
		w := newWorld(ctx)
		v, pages := withPages(w)
		// The invalid host causes a second failure, which is retried after a delay.
		v.Spec.Ingress = &viewv1.IngressSettings{Host: "Not a host"}
		create(ctx, pages, v)
		w.journal.refuse(refuseReading(pages.Name, http.StatusInternalServerError))
		w.run()
		eventually(ctx, v, viewv1.ConditionReady, "False ReadFailed")
		w.journal.refuse(nil)
		eventuallyReady(ctx, v)
		Expect(w.logs.String()).NotTo(ContainSubstring("Reconciler returned both"))
	})

	It("explains that the cache cannot be read, and changes no child", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		// The controller reads the Deployment from the API server before it replaces the template.
		before := childOf(ctx, v, &appsv1.Deployment{}).Spec.Template
		w.journal.refuse(func(r *http.Request) int {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/deployments/viewer-site") {
				return http.StatusForbidden
			}
			return 0
		})
		edit(ctx, v, "# Other\n")
		got := eventually(ctx, v, viewv1.ConditionReady, "False ReadFailed")
		Expect(message(got, viewv1.ConditionReady)).To(ContainSubstring("Deployment"))
		Expect(childOf(ctx, v, &appsv1.Deployment{}).Spec.Template).To(Equal(before))
		Expect(got.Status.ContentHash).NotTo(BeEmpty())
	})

	It("is Failed for kstatus when only a change of the spec helps", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		Expect(kstatus(current(ctx, v))).To(Equal("Current"))
		update(ctx, v, func(v *viewv1.MarkdownView) { v.Spec.Markdowns["SUMMARY.md"] = "- [Gone](gone.md)\n" })
		got := eventually(ctx, v, "Stalled", "True ContentInvalid")
		Expect(kstatus(got)).To(Equal("Failed"))
		update(ctx, v, func(v *viewv1.MarkdownView) {
			delete(v.Spec.Markdowns, "SUMMARY.md")
			v.Spec.Ingress = &viewv1.IngressSettings{Host: "Not a host"}
		})
		got = eventually(ctx, v, "Stalled", "True ChildRejected")
		Expect(kstatus(got)).To(Equal("Failed"))
		update(ctx, v, func(v *viewv1.MarkdownView) { v.Spec.Ingress = nil })
		Expect(kstatus(eventually(ctx, v, "Stalled", "False OK"))).NotTo(Equal("Failed"))
		eventuallyReady(ctx, v)
	})
})

// withPages returns a site with pages from a ConfigMap.
func withPages(w *world) (*viewv1.MarkdownView, *corev1.ConfigMap) {
	pages := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "pages"},
		Data:       map[string]string{"three.md": "# Three\n"},
	}
	return w.newView("site", func(s *viewv1.MarkdownViewSpec) {
		s.ContentFrom = []viewv1.ContentSource{{ConfigMap: viewv1.ConfigMapSource{Name: pages.Name}}}
	}), pages
}

// refuseReading responds to reads of a ConfigMap with a status code.
func refuseReading(name string, code int) func(*http.Request) int {
	return func(r *http.Request) int {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps/"+name) {
			return code
		}
		return 0
	}
}

// kstatus computes the status according to the rules of sigs.k8s.io/cli-utils/pkg/kstatus,
// which Flux, kpt and Crossplane use.
func kstatus(v *viewv1.MarkdownView) string {
	if v.Status.ObservedGeneration != v.Generation {
		return "InProgress"
	}
	for _, c := range v.Status.Conditions {
		switch {
		case c.Type == "Reconciling" && c.Status == metav1.ConditionTrue:
			return "InProgress"
		case c.Type == "Stalled" && c.Status == metav1.ConditionTrue:
			return "Failed"
		}
	}
	for _, c := range v.Status.Conditions {
		if c.Type == "Ready" && c.Status != metav1.ConditionTrue {
			return "InProgress"
		}
	}
	return "Current"
}
