package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
)

// noPlace prevents viewers from becoming Ready, because no node matches.
func noPlace(s *viewv1.MarkdownViewSpec) {
	s.Pod = &viewv1.PodSettings{NodeSelector: map[string]string{"no-such": "node"}}
}

// reader observes the site continuously through its Service.
type reader struct {
	mu      sync.Mutex
	served  []string
	nothing string
}

// read observes the site until the test ends. After the first viewer has become Ready, at
// least one viewer must be Ready at all times.
func (w *world) read(v *viewv1.MarkdownView) *reader {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	r := &reader{}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			r.look(ctx, v)
		}
	}()
	DeferCleanup(func() {
		cancel()
		<-done
	})
	return r
}

func (r *reader) look(ctx context.Context, v *viewv1.MarkdownView) {
	var s corev1.Service
	var sets appsv1.ReplicaSetList
	key := client.ObjectKey{Namespace: v.Namespace, Name: children.ViewerName(v.Name)}
	// The Service is read before the ReplicaSets, because the viewers that it selects must
	// still exist when the ReplicaSets are read.
	if api.Get(ctx, key, &s) != nil || api.List(ctx, &sets, client.InNamespace(v.Namespace)) != nil {
		return
	}
	template := s.Spec.Selector[children.TemplateLabel]
	var ready int32
	seen := ""
	for i := range sets.Items {
		set := &sets.Items[i]
		seen += fmt.Sprintf(" %s:%d", set.Labels[children.TemplateLabel], set.Status.ReadyReplicas)
		if set.Labels[children.TemplateLabel] == template {
			ready += set.Status.ReadyReplicas
		}
	}
	var again corev1.Service
	if api.Get(ctx, key, &again) != nil || again.ResourceVersion != s.ResourceVersion {
		return // the Service was switched between the two reads
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch hash := s.Spec.Selector[children.ContentLabel]; {
	case ready == 0 && len(r.served) > 0:
		r.nothing = fmt.Sprintf("the Service selects %s;%s", template, seen)
	case ready > 0 && (len(r.served) == 0 || r.served[len(r.served)-1] != hash):
		r.served = append(r.served, hash)
	}
}

// contents returns the contents that were served, in order, and fails the test if there was a time
// at which nothing was served.
func (r *reader) contents() []string {
	GinkgoHelper()
	r.mu.Lock()
	defer r.mu.Unlock()
	Expect(r.nothing).To(BeEmpty())
	return r.served
}

// eventuallyOneContent waits until the old content is deleted. A site can be Ready while
// the old content still exists, because the content is deleted only after its last viewer
// has ended.
func eventuallyOneContent(ctx context.Context, v *viewv1.MarkdownView) {
	GinkgoHelper()
	Eventually(func() []corev1.ConfigMap { return contents(ctx, v) }).Should(HaveLen(1))
}

var _ = Describe("A rollout", func() {
	It("reaches the newest content and always serves readers, after whichever write the controller is stopped", func(ctx SpecContext) {
		for limit := 1; ; limit++ {
			w := newWorld(ctx)
			v := w.newView("site")
			create(ctx, v)
			w.run()
			settle(ctx, w, v)
			w.stop()

			r := w.read(v)
			Eventually(r.contents).Should(HaveLen(1))
			edit(ctx, v, "# Other\n")
			w.journal = &journal{limit: limit}
			w.run()
			before := eventuallyStopped(ctx, w, v, limit)
			w.stop()
			w.journal = &journal{}
			w.run()
			settle(ctx, w, v)
			Eventually(r.contents).Should(HaveLen(2))
			// If the last write of the stopped controller was the status, settle may return
			// before the next controller has started, so the test also waits until the old
			// content is deleted.
			Eventually(func() []corev1.ConfigMap { return contents(ctx, v) }).Should(HaveLen(1))
			if before < limit {
				Expect(before).To(BeNumerically(">=", 5), "ConfigMap, Deployment, Service, Deployment, ConfigMap")
				return
			}
			w.stop()
		}
	}, SpecTimeout(10*time.Minute))

	It("that another edit interrupts keeps serving the first content until the third is Ready", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		r := w.read(v)
		Eventually(r.contents).Should(HaveLen(1))
		update(ctx, v, func(v *viewv1.MarkdownView) {
			v.Spec.Markdowns["one.md"] = "# Never\n"
			noPlace(&v.Spec)
		})
		eventually(ctx, v, viewv1.ConditionReady, "False RollingOut")
		update(ctx, v, func(v *viewv1.MarkdownView) { v.Spec.Replicas = new(int32(3)) })
		Consistently(func() int { return len(r.contents()) }).WithTimeout(500 * time.Millisecond).Should(Equal(1))
		update(ctx, v, func(v *viewv1.MarkdownView) {
			v.Spec.Markdowns["one.md"] = "# Third\n"
			v.Spec.Pod = nil
		})
		settle(ctx, w, v)
		Eventually(r.contents).Should(HaveLen(2))
		Expect(*childOf(ctx, v, &appsv1.Deployment{}).Spec.Replicas).To(BeEquivalentTo(3))
		eventuallyOneContent(ctx, v)
	})

	It("ends when an edit restores the content that is served", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		r := w.read(v)
		Eventually(r.contents).Should(HaveLen(1))
		first := current(ctx, v).Status.ContentHash
		update(ctx, v, func(v *viewv1.MarkdownView) {
			v.Spec.Markdowns["one.md"] = "# Never\n"
			noPlace(&v.Spec)
		})
		eventually(ctx, v, viewv1.ConditionReady, "False RollingOut")
		update(ctx, v, func(v *viewv1.MarkdownView) {
			v.Spec.Markdowns["one.md"] = "# One\n"
			v.Spec.Pod = nil
		})
		settle(ctx, w, v)
		Expect(r.contents()).To(HaveLen(1))
		Expect(current(ctx, v).Status.ContentHash).To(Equal(first))
		eventuallyOneContent(ctx, v)
	})

	It("always serves readers during ten edits in quick succession", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		r := w.read(v)
		Eventually(r.contents).Should(HaveLen(1))
		for i := range 10 {
			edit(ctx, v, fmt.Sprintf("# Edit %d\n", i%4))
			if i%3 == 0 {
				eventually(ctx, v, viewv1.ConditionReady, "True OK")
			}
		}
		settle(ctx, w, v)
		r.contents()
		eventuallyOneContent(ctx, v)
	}, SpecTimeout(3*time.Minute))
})

// eventuallyStopped waits until the controller has made as many writes as limit allows, or the site
// is Ready, and returns the number of writes.
func eventuallyStopped(ctx context.Context, w *world, v *viewv1.MarkdownView, limit int) int {
	GinkgoHelper()
	Eventually(func() bool {
		return len(w.journal.writes()) >= limit || told(current(ctx, v), viewv1.ConditionReady) == "True OK"
	}).Should(BeTrue())
	if len(w.journal.writes()) < limit {
		quiet(w)
	}
	return len(w.journal.writes())
}
