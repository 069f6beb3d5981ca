package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
)

// The operator that the MarkdownView tutorial builds has 24 known defects. The name of each
// spec begins with the number of a defect, and describes what this operator does instead.
// Tests elsewhere also cover some of the defects:
//
//	 8  names that could not become a Service: here for the schema, in internal/webhook/v1 for the rest
//	10  links of SUMMARY.md: here for the controller, in internal/webhook/v1 for the refusal
//	16  script in pages: TestNothingAnAuthorWritesBecomesScript in internal/render
//	19  rules that hold without the webhooks: here; rules of the webhooks in internal/webhook/v1
//	23  deprecated interfaces: the linter (staticcheck SA1019), and here the rights
//	24  a page is rendered: TestPagesAreRenderedFromOneResource in test/e2e
var _ = Describe("Defects of the tutorial's operator", func() {
	It("1: a page that was removed is not served any more", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		update(ctx, v, func(v *viewv1.MarkdownView) {
			v.Spec.Markdowns = map[string]string{"one.md": "# One\n"}
		})
		settle(ctx, w, v)
		eventuallyOneContent(ctx, v)
		cms := contents(ctx, v)
		Expect(cms[0].Data).To(Equal(map[string]string{"0": "# One\n"}))
	})

	It("2: the metrics of a site end when the site is deleted", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		eventuallyReady(ctx, v)
		Eventually(func() []string { return series(w.namespace) }).Should(ContainElement("markdownview_available 1"))
		Expect(api.Delete(ctx, v)).To(Succeed())
		Eventually(func() []string { return series(w.namespace) }).Should(BeEmpty())
	})

	It("3: a transition time changes only when the status of its condition changes", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site", noPlace)
		create(ctx, v)
		w.run()
		before := eventually(ctx, v, viewv1.ConditionAvailable, "False Unavailable")
		Eventually(func() bool { return time.Since(before.Status.Conditions[0].LastTransitionTime.Time) > 2*time.Second }).Should(BeTrue())
		quiet(w)
		writes := len(w.journal.accepted())
		// This event does not change the status of the site.
		update(ctx, childOf(ctx, v, &corev1.Service{}), func(s *corev1.Service) {
			s.Annotations = map[string]string{"somebody": "else"}
		})
		quiet(w)
		Expect(w.journal.accepted()[writes:]).To(BeEmpty())
		update(ctx, v, func(v *viewv1.MarkdownView) { v.Spec.Title = "Other" })
		after := eventually(ctx, v, viewv1.ConditionAvailable, "False Unavailable")
		Expect(meta.FindStatusCondition(after.Status.Conditions, viewv1.ConditionAvailable).LastTransitionTime).
			To(Equal(meta.FindStatusCondition(before.Status.Conditions, viewv1.ConditionAvailable).LastTransitionTime))
		quiet(w)
		// How often the status is written depends on the steps in which other controllers replace
		// the viewers, so the limit only rules out an endless loop.
		const most = 8
		Expect(w.journal.accepted()[writes:]).To(And(
			ContainElement("PATCH /apis/apps/v1/namespaces/"+w.namespace+"/deployments/viewer-site"),
			HaveEach(Or(HaveSuffix("/deployments/viewer-site"), HaveSuffix("/markdownviews/site/status"))),
			WithTransform(func(all []string) int { return len(all) }, BeNumerically("<=", most)),
		))
	})

	It("4: a condition reports a child that the API server refuses, and the other children are applied", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site", func(s *viewv1.MarkdownViewSpec) {
			s.Ingress = &viewv1.IngressSettings{Host: "Not a host"}
		})
		create(ctx, v)
		w.run()
		got := eventually(ctx, v, viewv1.ConditionDegraded, "True ChildRejected")
		Expect(message(got, viewv1.ConditionDegraded)).To(And(ContainSubstring(`Ingress "viewer-site"`), ContainSubstring("Not a host")))
		eventuallyReady(ctx, v)
		Eventually(func() []string { return eventsOf(ctx, w, "ChildRejected") }).Should(HaveLen(1))
		quiet(w)
		writes := len(w.journal.writes())
		// A late event may cause another attempt and a new status. A retry with a growing back-off
		// could stay within this limit, but such a retry happens only after Reconcile returns an
		// error, and the log would contain that error.
		Consistently(func() int { return len(w.journal.writes()) }).WithTimeout(2 * time.Second).Should(BeNumerically("<=", writes+2))
		Expect(w.logs.String()).NotTo(MatchRegexp("Reconciler error.*Not a host"))
		update(ctx, v, func(v *viewv1.MarkdownView) { v.Spec.Ingress.Host = "docs.example.org" })
		got = eventually(ctx, v, viewv1.ConditionDegraded, "False OK")
		Expect(got.Status.URL).To(Equal("http://docs.example.org/"))
	})

	It("5: a status is written without conflicts in the log, even if other clients write the object", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		for i := range 20 {
			update(ctx, v, func(v *viewv1.MarkdownView) {
				v.Labels = map[string]string{"n": strings.Repeat("x", i+1)}
				v.Spec.Markdowns["one.md"] = strings.Repeat("# One\n", i%3+1)
			})
		}
		settle(ctx, w, v)
		Expect(w.logs.String()).NotTo(Or(ContainSubstring("ERROR"), ContainSubstring("object has been modified")))
	})

	It("6: if viewers never become Ready, the old content is still served and a condition reports them", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run(func(o *Options) { o.ProgressDeadline = 2 * time.Second })
		settle(ctx, w, v)
		old := current(ctx, v).Status.ContentHash
		r := w.read(v)
		Eventually(r.contents).Should(HaveLen(1))
		update(ctx, v, func(v *viewv1.MarkdownView) {
			v.Spec.Markdowns["one.md"] = "# Never\n"
			noPlace(&v.Spec)
		})
		got := eventually(ctx, v, viewv1.ConditionReady, "False Stalled")
		Expect(told(got, viewv1.ConditionAvailable)).To(Equal("True OK"))
		Expect(told(got, viewv1.ConditionDegraded)).To(Equal("True Stalled"))
		Expect(got.Status.ObservedGeneration).To(Equal(got.Generation))
		Expect(got.Status.ContentHash).To(Equal(old))
		Expect(got.Status.ReadyReplicas).To(BeZero())
		Expect(r.contents()).To(HaveLen(1))
		update(ctx, v, func(v *viewv1.MarkdownView) { v.Spec.Pod = nil })
		eventuallyReady(ctx, v)
		eventually(ctx, v, viewv1.ConditionDegraded, "False OK")
	})

	It("7: an object of another owner is never taken over, whatever its kind", func(ctx SpecContext) {
		w := newWorld(ctx)
		foreign := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "viewer-site"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1234}}, Selector: map[string]string{"a": "b"}},
		}
		policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "viewer-site"}}
		create(ctx, foreign, policy)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		got := eventually(ctx, v, viewv1.ConditionDegraded, "True ForeignObject")
		Expect(message(got, viewv1.ConditionDegraded)).To(And(ContainSubstring(`Service "viewer-site"`), ContainSubstring(`NetworkPolicy "viewer-site"`)))
		Eventually(func() int32 { return current(ctx, v).Status.Replicas }).Should(BeEquivalentTo(2))
		Expect(current(ctx, foreign).ResourceVersion).To(Equal(foreign.ResourceVersion))
		Expect(current(ctx, policy).ResourceVersion).To(Equal(policy.ResourceVersion))
		quiet(w)
		writes := w.journal.writes()
		Consistently(w.journal.writes).WithTimeout(time.Second).Should(Equal(writes))
		// The deletion is noticed, although no cache holds the objects.
		Expect(api.Delete(ctx, foreign)).To(Succeed())
		Expect(api.Delete(ctx, policy)).To(Succeed())
		eventually(ctx, v, viewv1.ConditionDegraded, "False OK")
		eventuallyReady(ctx, v)
	})

	It("8: a name that could not become a Service is refused", func(ctx SpecContext) {
		w := newWorld(ctx)
		for _, name := range []string{"has.dots", strings.Repeat("a", 57)} {
			Expect(api.Create(ctx, w.newView(name))).To(MatchError(ContainSubstring("metadata.name must have at most 56 characters and no dots")))
		}
		v := w.newView("1" + strings.Repeat("a", 55))
		create(ctx, v)
		w.run()
		eventuallyReady(ctx, v)
	})

	It("9: pages can have directories and any letters, assets any bytes, and a site more data than a ConfigMap", func(ctx SpecContext) {
		w := newWorld(ctx)
		big := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "big"},
			BinaryData: map[string][]byte{"a.bin": append([]byte{0xff}, make([]byte, 600_000)...)},
		}
		create(ctx, big)
		v := w.newView("site", func(s *viewv1.MarkdownViewSpec) {
			s.Markdowns = map[string]string{"README.md": "# Home\n", "手引き/導入 guide.md": "# 導入\n"}
			s.BinaryAssets = map[string][]byte{"img/a.png": append([]byte{0xff, 0x00}, make([]byte, 500_000)...)}
			s.ContentFrom = []viewv1.ContentSource{{Path: "files/big", ConfigMap: viewv1.ConfigMapSource{Name: "big"}}}
		})
		create(ctx, v)
		w.run()
		eventuallyReady(ctx, v)
		Expect(contents(ctx, v)).To(HaveLen(2))
		var paths []string
		for _, source := range childOf(ctx, v, &appsv1.Deployment{}).Spec.Template.Spec.Volumes[0].Projected.Sources {
			for _, item := range source.ConfigMap.Items {
				paths = append(paths, item.Path)
			}
		}
		Expect(paths).To(ConsistOf("README.md", "手引き/導入 guide.md", "img/a.png", "files/big/a.bin"))
	})

	It("10: mdBook is not given a SUMMARY.md that it would crash on", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site", func(s *viewv1.MarkdownViewSpec) {
			s.Engine = viewv1.EngineMdBook
			s.Markdowns["SUMMARY.md"] = "- [None](none.md)\n"
		})
		create(ctx, v)
		w.run()
		got := eventually(ctx, v, viewv1.ConditionReady, "False ContentInvalid")
		Expect(message(got, viewv1.ConditionReady)).To(And(ContainSubstring("SUMMARY.md:1"), ContainSubstring("none.md")))
		Expect(api.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "viewer-site"}, &appsv1.Deployment{})).NotTo(Succeed())
	})

	It("11, 13 and 14: viewers are ours, unprivileged, and have no token", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		eventuallyReady(ctx, v)
		pod := childOf(ctx, v, &appsv1.Deployment{}).Spec.Template.Spec
		c := pod.Containers[0]
		Expect(c.Command).To(Equal([]string{"/viewer"}))
		Expect(*pod.AutomountServiceAccountToken).To(BeFalse())
		Expect(*pod.SecurityContext.RunAsNonRoot).To(BeTrue())
		Expect(*c.SecurityContext.ReadOnlyRootFilesystem).To(BeTrue())
		// The strictest Pod Security Standard admits the Pods.
		update(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, func(ns *corev1.Namespace) {
			ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
		})
		for _, engine := range []viewv1.Engine{viewv1.EngineViewer, viewv1.EngineMdBook} {
			site := &children.Site{View: w.newView("x", func(s *viewv1.MarkdownViewSpec) { s.Engine = engine }), Title: "t", Hash: "h", Options: children.Options{Image: "i"}}
			template, _, err := children.Template(site)
			Expect(err).NotTo(HaveOccurred())
			var spec corev1.PodSpec
			text, err := yaml.Marshal(template.Spec)
			Expect(err).NotTo(HaveOccurred())
			Expect(yaml.Unmarshal(text, &spec)).To(Succeed())
			Eventually(func() error {
				return api.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "p-"}, Spec: spec}, client.DryRunAll)
			}).WithTimeout(10*time.Second).Should(Or(Succeed(), MatchError(ContainSubstring("serviceaccount"))), string(engine))
		}
	})

	It("12: a new default image reaches the sites that name none", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		Expect(current(ctx, v).Spec.ViewerImage).To(BeEmpty())
		w.stop()
		w.run(func(o *Options) { o.Children.Image = "koboshi.example/markdownview:2.0.0" })
		Eventually(func() string {
			return childOf(ctx, v, &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Image
		}).Should(Equal("koboshi.example/markdownview:2.0.0"))
		settle(ctx, w, v)
	})

	It("14: an image that is not allowed does not run, even without the webhooks", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run(func(o *Options) { o.AllowedImage = func(image string) bool { return image == viewerImage } })
		settle(ctx, w, v)
		update(ctx, v, func(v *viewv1.MarkdownView) { v.Spec.ViewerImage = "evil.example/miner" })
		got := eventually(ctx, v, viewv1.ConditionDegraded, "True ImageNotAllowed")
		Expect(told(got, viewv1.ConditionAvailable)).To(Equal("True OK"))
		Expect(childOf(ctx, v, &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Image).To(Equal(viewerImage))
	})

	It("15: readers get only the old content, and then only the new content", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		r := w.read(v)
		Eventually(r.contents).Should(HaveLen(1))
		edit(ctx, v, "# Other\n")
		settle(ctx, w, v)
		got := current(ctx, v)
		Eventually(r.contents).Should(HaveLen(2))
		Expect(r.contents()[1]).To(Equal(got.Status.ContentHash))
	})

	It("17: a site has an Ingress, a disruption budget and a network policy only while the spec asks for them", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site", func(s *viewv1.MarkdownViewSpec) {
			s.BasePath = "/handbook"
			s.Ingress = &viewv1.IngressSettings{Host: "docs.example.org", TLSSecretName: "tls"}
		})
		create(ctx, v)
		w.run()
		Expect(eventuallyReady(ctx, v).Status.URL).To(Equal("https://docs.example.org/handbook/"))
		Expect(childOf(ctx, v, &networkingv1.Ingress{}).Spec.Rules[0].HTTP.Paths[0].Path).To(Equal("/handbook/"))
		Expect(childOf(ctx, v, &policyv1.PodDisruptionBudget{}).Spec.MaxUnavailable.IntValue()).To(Equal(1))
		Expect(childOf(ctx, v, &networkingv1.NetworkPolicy{}).Spec.Egress).To(BeEmpty())
		Expect(childOf(ctx, v, &corev1.Service{}).Spec.Ports[0].Name).To(Equal("http"))
		update(ctx, v, func(v *viewv1.MarkdownView) {
			v.Spec.Ingress = nil
			v.Spec.Replicas = new(int32(1))
			v.Spec.NetworkPolicy = &viewv1.NetworkPolicySettings{Disabled: true}
		})
		for _, o := range []client.Object{&networkingv1.Ingress{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}} {
			Eventually(func() error {
				return api.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "viewer-site"}, o)
			}).Should(MatchError(ContainSubstring("not found")))
		}
	})

	It("18: kubectl scale and an autoscaler work, and the operator does not revert them", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		scale := &autoscalingv1.Scale{}
		Expect(api.SubResource("scale").Get(ctx, v, scale)).To(Succeed())
		Expect(scale.Status.Replicas).To(BeEquivalentTo(2))
		Expect(scale.Status.Selector).To(ContainSubstring("app.kubernetes.io/instance=site"))
		// If an autoscaler requests more replicas than the schema allows, the request is refused,
		// and nothing is scaled.
		for _, replicas := range []int32{4, 20, 3} {
			Eventually(func() error {
				if err := api.SubResource("scale").Get(ctx, v, scale); err != nil {
					return err
				}
				scale.Spec.Replicas = replicas
				return api.SubResource("scale").Update(ctx, v, client.WithSubResourceBody(scale))
			}).Should(Succeed())
			Eventually(func() int32 { return current(ctx, v).Status.ReadyReplicas }).Should(Equal(replicas))
			quiet(w)
			Expect(*current(ctx, v).Spec.Replicas).To(Equal(replicas))
			Expect(*childOf(ctx, v, &appsv1.Deployment{}).Spec.Replicas).To(Equal(replicas))
		}
	})

	It("19: the rules in the schema hold without the webhooks", func(ctx SpecContext) {
		w := newWorld(ctx)
		for field, change := range map[string]func(*viewv1.MarkdownViewSpec){
			"spec.replicas":    func(s *viewv1.MarkdownViewSpec) { s.Replicas = new(int32(51)) },
			"spec.markdowns":   func(s *viewv1.MarkdownViewSpec) { s.Markdowns["../up.md"] = "" },
			"at least one":     func(s *viewv1.MarkdownViewSpec) { s.Markdowns = nil },
			"spec.viewerImage": func(s *viewv1.MarkdownViewSpec) { s.ViewerImage = "no image" },
		} {
			Expect(api.Create(ctx, w.newView("site", change))).To(MatchError(ContainSubstring(field)))
		}
	})

	It("20: the cache holds the operator's own objects, and no others", func(ctx SpecContext) {
		w := newWorld(ctx)
		create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "other"}, Data: map[string]string{"a": "b"}})
		v := w.newView("site")
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		Expect(w.manager.GetCache().List(ctx, &list)).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		Expect(list.Items[0].Name).To(HavePrefix("markdowns-site-"))
		var sets appsv1.ReplicaSetList
		Expect(w.manager.GetCache().List(ctx, &sets)).To(Succeed())
		Expect(sets.Items).NotTo(BeEmpty())
		Expect(sets.Items[0].Spec.Template.Spec.Containers).To(BeEmpty())
	})

	It("20: the manager keeps the text of a spec in memory once, and the text of a ConfigMap not at all", func(ctx SpecContext) {
		const pairs, size = 4, 500_000
		w := newWorld(ctx)
		w.run()
		grow := func(from, to int) {
			for n := from; n < to; n++ {
				text := map[string]string{"README.md": fmt.Sprintf("# Site %d\n\n```\n%s```\n", n, strings.Repeat("code code code code\n", size/20))}
				for _, name := range []string{"pages", "other"} {
					create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprint(name, n)}, Data: text})
				}
				create(ctx,
					w.newView(fmt.Sprint("holds", n), func(s *viewv1.MarkdownViewSpec) { s.Markdowns = text }),
					w.newView(fmt.Sprint("refers", n), func(s *viewv1.MarkdownViewSpec) {
						s.Markdowns = nil
						s.ContentFrom = []viewv1.ContentSource{{ConfigMap: viewv1.ConfigMapSource{Name: fmt.Sprint("pages", n)}}}
					}))
			}
			for n := from; n < to; n++ {
				eventuallyReady(ctx, w.newView(fmt.Sprint("holds", n)))
				eventuallyReady(ctx, w.newView(fmt.Sprint("refers", n)))
			}
			quiet(w)
		}
		// The memory of the first sites includes buffers as large as the largest object.
		grow(0, 2)
		before := heap()
		grow(2, 2+pairs)
		// On a busy machine, requests that are still in progress also need memory.
		Eventually(ctx, func() int { return (heap() - before - pairs*size) / (2 * pairs) }).
			Should(BeNumerically("<", size/2), "bytes for each site, beside the text in its spec")
	})

	It("21: the manager stops at once, even in the middle of a rollout", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site", noPlace)
		create(ctx, v)
		w.run()
		eventually(ctx, v, viewv1.ConditionReady, "False RollingOut")
		began := time.Now()
		w.stop()
		Expect(time.Since(began)).To(BeNumerically("<", 15*time.Second))
	})

	It("22: the right to read the metrics belongs to the Prometheus server, not to Prometheus Operator", func() {
		files, err := filepath.Glob(filepath.Join("..", "..", "config", "*", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		found := 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			var b rbacv1.ClusterRoleBinding
			if yaml.Unmarshal(text, &b) != nil || b.Kind != "ClusterRoleBinding" || !strings.HasSuffix(b.RoleRef.Name, "metrics-reader") {
				continue
			}
			found++
			Expect(b.Subjects).To(HaveLen(1))
			Expect(b.Subjects[0].Name).NotTo(HaveSuffix("operator"))
		}
		Expect(found).To(Equal(1))
	})

	It("23: Events belong to events.k8s.io, and the manager may write only these Events", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		eventuallyReady(ctx, v)
		Eventually(func() []string { return eventsOf(ctx, w, "Available") }).Should(HaveLen(1))
		text, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
		Expect(err).NotTo(HaveOccurred())
		var role rbacv1.ClusterRole
		Expect(yaml.Unmarshal(text, &role)).To(Succeed())
		for _, rule := range role.Rules {
			if strings.Join(rule.Resources, " ") == "events" {
				Expect(rule.APIGroups).To(Equal([]string{"events.k8s.io"}))
			}
		}
	})
})

// heap returns the memory in use after a garbage collection, including stacks.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// series returns the metrics of sites in a namespace, as "name value".
func series(namespace string) []string {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	var found []string
	for _, family := range families {
		for _, m := range family.Metric {
			for _, label := range m.Label {
				if label.GetName() == "namespace" && label.GetValue() == namespace {
					found = append(found, fmt.Sprintf("%s %v", family.GetName(), m.GetGauge().GetValue()))
				}
			}
		}
	}
	return found
}

// eventsOf returns the messages of the Events with this reason in a namespace.
func eventsOf(ctx context.Context, w *world, reason string) []string {
	GinkgoHelper()
	var list corev1.EventList
	Expect(api.List(ctx, &list, client.InNamespace(w.namespace))).To(Succeed())
	var messages []string
	for i := range list.Items {
		if list.Items[i].Reason == reason {
			messages = append(messages, list.Items[i].Message)
		}
	}
	return messages
}
