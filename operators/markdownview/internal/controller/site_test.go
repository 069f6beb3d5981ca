package controller

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
)

// everything sets every field of the spec.
func everything(s *viewv1.MarkdownViewSpec) {
	s.Title, s.Theme, s.BasePath = "Costs $(HOME) $5", viewv1.ThemeDark, "/handbook/"
	s.Service = &viewv1.ServiceSettings{Type: corev1.ServiceTypeNodePort, Annotations: map[string]string{"a": ""}}
	s.Ingress = &viewv1.IngressSettings{Host: "a.example", ClassName: new("nginx"), TLSSecretName: "tls", Annotations: map[string]string{"b": "c"}}
	s.NetworkPolicy = &viewv1.NetworkPolicySettings{From: []viewv1.NetworkPolicyPeer{{
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "k", Operator: metav1.LabelSelectorOpIn, Values: []string{"v"}}}},
	}, {NamespaceSelector: &metav1.LabelSelector{}}}}
	s.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1000m"), corev1.ResourceMemory: resource.MustParse("0.5Gi")}}
	s.Pod = &viewv1.PodSettings{
		Labels: map[string]string{"team": "docs", children.TemplateLabel: "mine"}, Annotations: map[string]string{"d": "e"},
		Tolerations: []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "t", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}}}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "t", WhenUnsatisfiable: corev1.ScheduleAnyway}},
		ImagePullSecrets:          []corev1.LocalObjectReference{{Name: "pull"}},
	}
}

var _ = Describe("A site", func() {
	It("causes no writes once it matches its spec, whatever the spec contains, even after a restart", func(ctx SpecContext) {
		w := newWorld(ctx)
		create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "more"}, Data: map[string]string{"more.md": "# More\n"}})
		from := []viewv1.ContentSource{{Path: "more", ConfigMap: viewv1.ConfigMapSource{Name: "more"}}}
		all := w.newView("all", everything, func(s *viewv1.MarkdownViewSpec) { s.ContentFrom = from })
		plain := w.newView("plain")
		mdbook := w.newView("mdbook", func(s *viewv1.MarkdownViewSpec) {
			s.ViewerImage = "example.org:5000/x/mdbook:v1@sha256:" + strings.Repeat("0", 64)
		})
		create(ctx, all, plain, mdbook)
		w.run()
		for _, v := range []*viewv1.MarkdownView{all, plain, mdbook} {
			settle(ctx, w, v)
		}
		Expect(childOf(ctx, mdbook, &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Command).To(Equal([]string{"mdbook"}))
		w.stop()
		w.journal = &journal{}
		w.run()
		touch := func() {
			for _, v := range []*viewv1.MarkdownView{all, plain, mdbook} {
				update(ctx, childOf(ctx, v, &corev1.Service{}), func(s *corev1.Service) {
					metav1.SetMetaDataAnnotation(&s.ObjectMeta, "touched", time.Now().String())
				})
			}
		}
		for range 3 {
			touch()
			Consistently(w.journal.writes).WithTimeout(700 * time.Millisecond).Should(BeEmpty())
		}
	})

	It("is repaired, and keeps the fields that other clients have set", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		d := childOf(ctx, v, &appsv1.Deployment{})
		restart := appsv1ac.Deployment(d.Name, d.Namespace).WithSpec(appsv1ac.DeploymentSpec().WithTemplate(
			corev1ac.PodTemplateSpec().WithAnnotations(map[string]string{"kubectl.kubernetes.io/restartedAt": "now"})))
		Expect(api.Apply(ctx, restart, client.FieldOwner("kubectl-rollout"))).To(Succeed())
		update(ctx, d, func(d *appsv1.Deployment) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, "theirs", "kept")
			d.Spec.Template.Spec.Containers[0].Image = "evil.example/miner"
			d.Spec.Replicas = new(int32(5))
			delete(d.Labels, children.ManagerLabel) // this removes it from the cache
		})
		update(ctx, childOf(ctx, v, &corev1.Service{}), func(s *corev1.Service) { s.Spec.Selector = map[string]string{"a": "b"} })
		Expect(api.Delete(ctx, childOf(ctx, v, &networkingv1.NetworkPolicy{}))).To(Succeed())
		Expect(api.Delete(ctx, &contents(ctx, v)[0])).To(Succeed())
		Eventually(func(g Gomega) {
			got := childOf(ctx, v, &appsv1.Deployment{})
			g.Expect(got.Spec.Template.Spec.Containers[0].Image).To(Equal(viewerImage))
			g.Expect(*got.Spec.Replicas).To(BeEquivalentTo(2))
			g.Expect(got.Labels).To(HaveKey(children.ManagerLabel))
			g.Expect(got.Annotations).To(HaveKeyWithValue("theirs", "kept"))
			g.Expect(got.Spec.Template.Annotations).To(HaveKeyWithValue("kubectl.kubernetes.io/restartedAt", "now"))
			g.Expect(childOf(ctx, v, &corev1.Service{}).Spec.Selector).To(HaveKey(children.TemplateLabel))
			g.Expect(contents(ctx, v)).To(HaveLen(1))
			var policies networkingv1.NetworkPolicyList
			g.Expect(api.List(ctx, &policies, client.InNamespace(w.namespace))).To(Succeed())
			g.Expect(policies.Items).To(HaveLen(1))
		}).Should(Succeed())
		settle(ctx, w, v)
		Expect(childOf(ctx, v, &appsv1.Deployment{}).OwnerReferences).To(HaveLen(1))
	})

	It("never adopts an object that is created between the read and the write", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		w.stop()
		view := current(ctx, v)
		theirs := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "theirs"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
		}
		create(ctx, theirs)
		want := children.Service(view, "c", "t").WithName("theirs")
		r := &Reconciler{client: blind{api, theirs.Name}, reader: blind{api, theirs.Name}}
		Expect(r.ensure(ctx, &pass{view: view}, service("theirs", want))).To(MatchError(errRace))
		// This object belonged to the site when it was read, and has been replaced since
		// then.
		ours := children.Service(view, "c", "t").WithName("ours")
		r = &Reconciler{client: api, reader: api}
		Expect(r.ensure(ctx, &pass{view: view}, service("ours", ours))).To(Succeed())
		stale := children.Service(view, "c", "other").WithName("ours").WithUID(types.UID("00000000-0000-0000-0000-000000000000"))
		Expect(isRace(api.Apply(ctx, stale, client.FieldOwner(children.Owner), client.ForceOwnership))).To(BeTrue())
		Expect(current(ctx, theirs).ResourceVersion).To(Equal(theirs.ResourceVersion))
	})

	It("follows its ConfigMaps, and is still served when one is deleted", func(ctx SpecContext) {
		w := newWorld(ctx)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "pages"}, Data: map[string]string{"a.md": "# A\n", "b.md": "# B\n"}}
		v := w.newView("site", func(s *viewv1.MarkdownViewSpec) {
			s.Markdowns = nil
			s.ContentFrom = []viewv1.ContentSource{
				{Path: "guide", ConfigMap: viewv1.ConfigMapSource{Name: "pages"}},
				{ConfigMap: viewv1.ConfigMapSource{Name: "none", Optional: true}},
			}
		})
		create(ctx, v)
		w.run()
		got := eventually(ctx, v, viewv1.ConditionDegraded, "True ContentMissing")
		Expect(message(got, viewv1.ConditionDegraded)).To(ContainSubstring(`the ConfigMap "pages" does not exist`))
		create(ctx, cm)
		Expect(eventuallyReady(ctx, v).Status.Pages).To(BeEquivalentTo(2))
		settle(ctx, w, v)
		first := current(ctx, v).Status.ContentHash
		update(ctx, cm, func(cm *corev1.ConfigMap) { cm.Data["a.md"] = "# Other\n" })
		Eventually(func() string { return current(ctx, v).Status.ContentHash }).ShouldNot(Equal(first))
		settle(ctx, w, v)
		second := current(ctx, v).Status.ContentHash
		Expect(api.Delete(ctx, cm)).To(Succeed())
		got = eventually(ctx, v, viewv1.ConditionReady, "False ContentMissing")
		Expect(told(got, viewv1.ConditionAvailable)).To(Equal("True OK"))
		Expect(got.Status.ContentHash).To(Equal(second))
		// The site can still be scaled.
		update(ctx, v, func(v *viewv1.MarkdownView) { v.Spec.Replicas = new(int32(3)) })
		Eventually(func() int32 { return current(ctx, v).Status.Replicas }).Should(BeEquivalentTo(3))
	})

	It("has no viewers while it is suspended, and is served again afterwards", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site")
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		update(ctx, v, func(v *viewv1.MarkdownView) { v.Spec.Suspend = true })
		eventually(ctx, v, viewv1.ConditionAvailable, "False Suspended")
		Eventually(func() int32 { return current(ctx, v).Status.Replicas }).Should(BeZero())
		Expect(kstatus(eventually(ctx, v, viewv1.ConditionReady, "True Suspended"))).To(Equal("Current"))
		edit(ctx, v, "# While suspended\n")
		quiet(w)
		update(ctx, v, func(v *viewv1.MarkdownView) { v.Spec.Suspend = false })
		settle(ctx, w, v)
		eventuallyOneContent(ctx, v)
		Expect(current(ctx, v).Status.ReadyReplicas).To(BeEquivalentTo(2))
	})

	It("reports the problems in its pages", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site", func(s *viewv1.MarkdownViewSpec) { s.Markdowns["two.md"] = "# Two\n\n[dead](none.md)\n" })
		create(ctx, v)
		w.run()
		got := eventuallyReady(ctx, v)
		Expect(got.Status.ProblemCount).To(BeEquivalentTo(1))
		Expect(got.Status.Problems[0].Path).To(Equal("two.md"))
		Expect(got.Status.Problems[0].Line).To(BeEquivalentTo(3))
	})

	It("is published at a new path only when the viewers for this path are Ready", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site", func(s *viewv1.MarkdownViewSpec) {
			s.BasePath = "/old/"
			s.Ingress = &viewv1.IngressSettings{Host: "docs.example.org"}
		})
		create(ctx, v)
		w.run(func(o *Options) { o.ProgressDeadline = time.Second })
		settle(ctx, w, v)
		path := func() string { return childOf(ctx, v, &networkingv1.Ingress{}).Spec.Rules[0].HTTP.Paths[0].Path }
		update(ctx, v, func(v *viewv1.MarkdownView) {
			v.Spec.BasePath = "/new/"
			noPlace(&v.Spec)
		})
		eventually(ctx, v, viewv1.ConditionReady, "False Stalled")
		Expect(path()).To(Equal("/old/"))
		update(ctx, v, func(v *viewv1.MarkdownView) { v.Spec.Pod = nil })
		Eventually(path).Should(Equal("/new/"))
		settle(ctx, w, v)
	})

	It("leaves all its objects to the garbage collector", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site", everything)
		create(ctx, v)
		w.run()
		settle(ctx, w, v)
		owned := []client.Object{&contents(ctx, v)[0], childOf(ctx, v, &appsv1.Deployment{}), childOf(ctx, v, &corev1.Service{}), childOf(ctx, v, &networkingv1.Ingress{})}
		for _, o := range owned {
			Expect(metav1.IsControlledBy(o, current(ctx, v))).To(BeTrue())
		}
		Expect(api.Delete(ctx, v, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		if bare {
			return
		}
		for _, o := range append(owned, v) {
			Eventually(func() error { return api.Get(ctx, client.ObjectKeyFromObject(o), o) }).Should(MatchError(ContainSubstring("not found")))
		}
	})

	It("is published through a Gateway as soon as the cluster knows HTTPRoutes", func(ctx SpecContext) {
		w := newWorld(ctx)
		v := w.newView("site", func(s *viewv1.MarkdownViewSpec) {
			s.HTTPRoute = &viewv1.HTTPRouteSettings{
				ParentRefs: []viewv1.GatewayRef{{Name: "gw", Namespace: "infra", SectionName: "web"}}, Hostnames: []string{"docs.example.org"}}
		})
		create(ctx, v)
		w.run()
		eventuallyReady(ctx, v)
		if meta.IsNoMatchError(api.List(ctx, &gatewayv1.HTTPRouteList{})) {
			eventually(ctx, v, viewv1.ConditionDegraded, "True GatewayAPIMissing")
			dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
			Expect(err).NotTo(HaveOccurred())
			_, err = envtest.InstallCRDs(cfg, envtest.CRDInstallOptions{Paths: []string{
				filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "standard", "gateway.networking.k8s.io_httproutes.yaml")}})
			Expect(err).NotTo(HaveOccurred())
			edit(ctx, v, "# Other\n")
		}
		eventually(ctx, v, viewv1.ConditionDegraded, "False OK")
		route := childOf(ctx, v, &gatewayv1.HTTPRoute{})
		Expect(route.Spec.Rules[0].BackendRefs[0].Name).To(BeEquivalentTo("viewer-site"))
		Expect(current(ctx, v).Status.URL).To(Equal("http://docs.example.org/"))
		settle(ctx, w, v)
		eventuallyOneContent(ctx, v)
		quiet(w) // the status may be written after the old content is deleted
		// From now on, the controller watches the route. The controller makes no
		// unnecessary writes, restores a deleted route, and deletes the route when the spec
		// no longer has it.
		writes := w.journal.writes()
		metav1.SetMetaDataAnnotation(&route.ObjectMeta, "a", "b")
		Expect(api.Update(ctx, route)).To(Succeed())
		Consistently(w.journal.writes).WithTimeout(700 * time.Millisecond).Should(Equal(writes))
		Expect(api.Delete(ctx, route)).To(Succeed())
		Eventually(func() error { return api.Get(ctx, client.ObjectKeyFromObject(route), route) }).Should(Succeed())
		update(ctx, v, func(v *viewv1.MarkdownView) { v.Spec.HTTPRoute = nil })
		Eventually(func() error { return api.Get(ctx, client.ObjectKeyFromObject(route), route) }).Should(MatchError(ContainSubstring("not found")))
	})
})

// blind is a client that does not find one existing object.
type blind struct {
	client.Client
	name string
}

func (b blind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if key.Name == b.name {
		key.Name = "not-seen-yet"
	}
	return b.Client.Get(ctx, key, obj, opts...)
}
