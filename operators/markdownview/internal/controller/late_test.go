package controller

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/refs"
)

// The cache lags behind the API server, sometimes by seconds.
var _ = Describe("A controller whose cache is outdated", func() {
	It("creates nothing for a deleted site", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		Expect(api.Delete(ctx, v)).To(Succeed())
		_, err := behind(w, v).Reconcile(ctx, requestFor(v))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.journal.writes()).To(BeEmpty())
	})

	It("creates nothing for a site that another site of the same name has replaced", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		Expect(api.Delete(ctx, v)).To(Succeed())
		create(ctx, w.newView("site"))
		_, err := behind(w, v).Reconcile(ctx, requestFor(v))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.journal.writes()).To(BeEmpty())
	})

	It("does not report an error if a status cannot be written because the site is deleted", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		Expect(api.Delete(ctx, v)).To(Succeed())
		Expect(behind(w, v).report(ctx, &pass{view: v})).To(Succeed())
	})

	// The test writes a wrong status, as a reconciliation with a stale cache would. No
	// other reconciliation is due, so only the event of the wrong write can trigger the
	// repair.
	It("corrects a wrong status", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		Eventually(func() error {
			got := current(ctx, v)
			meta.SetStatusCondition(&got.Status.Conditions, metav1.Condition{
				Type: viewv1.ConditionReady, Status: metav1.ConditionFalse, Reason: viewv1.ReasonRollingOut, ObservedGeneration: got.Generation,
			})
			return api.Status().Update(ctx, got)
		}).Should(Succeed())
		eventuallyReady(ctx, v)
	})
})

// behind returns a reconciler whose cache holds the old MarkdownView v.
func behind(w *world, v *viewv1.MarkdownView) *Reconciler {
	GinkgoHelper()
	counted := rest.CopyConfig(cfg)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return w.journal.wrap(next) })
	all, err := client.New(counted, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	names, err := metadata.NewForConfig(counted)
	Expect(err).NotTo(HaveOccurred())
	o := Options{Children: children.Options{Image: viewerImage}, Clock: clock.RealClock{}}
	Expect(o.complete()).To(Succeed())
	return &Reconciler{
		client: &lateCache{all, v}, reader: all, recorder: events.NewFakeRecorder(10), refs: refs.New(names),
		routes: &routes{mapper: meta.NewDefaultRESTMapper(nil)}, options: o, clock: o.Clock,
	}
}

func requestFor(v *viewv1.MarkdownView) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: v.Namespace, Name: v.Name}}
}

// lateCache holds an old MarkdownView.
type lateCache struct {
	client.Client
	view *viewv1.MarkdownView
}

func (c *lateCache) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if into, ok := o.(*viewv1.MarkdownView); ok {
		c.view.DeepCopyInto(into)
		return nil
	}
	return c.Client.Get(ctx, key, o, options...)
}
