package v1

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

type (
	spec  = viewv1.MarkdownViewSpec
	pages = map[string]string
)

// unsanitised is the warning about mdBook.
const unsanitised = "spec.engine: mdBook does not sanitize pages: HTML and scripts in them run in the readers' browsers"

// onePage is the smallest site.
var onePage = pages{"a.md": "# A"}

// refusals returns the field and the message of each cause in the API server's refusal of an
// object.
func refusals(err error) []string {
	GinkgoHelper()
	Expect(err).To(HaveOccurred(), "the object was accepted")
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	var told []string
	for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
		if cause.Field != "<nil>" {
			told = append(told, cause.Field+": "+cause.Message)
		}
	}
	return told
}

var _ = Describe("The webhooks", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) {
		namespace = newNamespace(ctx)
		warnings.take()
	})
	create := func(ctx context.Context, s spec) error {
		v := view(namespace, nil)
		v.Spec = s
		return api.Create(ctx, v)
	}

	It("add the closing slash to basePath, and set no other field", func(ctx context.Context) {
		v := view(namespace, onePage)
		v.Spec.BasePath = "/docs/x"
		Expect(api.Create(ctx, v)).To(Succeed())
		one := int32(1)
		Expect(v.Spec).To(Equal(spec{Markdowns: onePage, Replicas: &one, Language: "en", Theme: viewv1.ThemeAuto, BasePath: "/docs/x/"}))
		Expect(v.Status).To(Equal(viewv1.MarkdownViewStatus{}))
		Expect(warnings.take()).To(BeEmpty())
		v.Spec.BasePath = "/other"
		Expect(api.Update(ctx, v)).To(Succeed())
		Expect(v.Spec.BasePath).To(Equal("/other/"))
	})

	DescribeTable("admit without a warning",
		func(ctx context.Context, s spec) {
			Expect(create(ctx, s)).To(Succeed())
			Expect(warnings.take()).To(BeEmpty())
		},
		Entry("pages without SUMMARY.md", spec{Markdowns: onePage}),
		Entry("drafts", spec{Markdowns: pages{"SUMMARY.md": "- [A](a.md)\n- [Later]()\n", "a.md": ""}}),
		Entry("an image in the list", spec{Markdowns: onePage, ViewerImage: "ghcr.io/acme/viewer:v2"}),
		Entry("the operator's own image", spec{Markdowns: onePage, ViewerImage: defaultImage}),
		Entry("links to files that a ConfigMap may contain", spec{
			Markdowns:   pages{"a.md": "[b](b.md) ![c](img/c.png)"},
			ContentFrom: []viewv1.ContentSource{{ConfigMap: viewv1.ConfigMapSource{Name: "rest"}}},
		}),
		Entry("a mistake that affects only mdBook, with the viewer", spec{Markdowns: pages{"SUMMARY.md": "- [A](/a.md)", "a.md": ""}}),
		Entry("valid settings for everything that publishes a site", spec{
			Markdowns: onePage,
			HTTPRoute: &viewv1.HTTPRouteSettings{
				ParentRefs: []viewv1.GatewayRef{{Name: "a"}, {Name: "a", SectionName: "https"}}, Hostnames: []string{"docs.example.com"},
			},
			NetworkPolicy: &viewv1.NetworkPolicySettings{From: []viewv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}},
			Pod:           &viewv1.PodSettings{Labels: map[string]string{"team": "docs"}, NodeSelector: map[string]string{"disk": "ssd"}},
		}),
	)

	DescribeTable("admit mdBook, and warn that it does not sanitise pages",
		func(ctx context.Context, s spec) {
			Expect(create(ctx, s)).To(Succeed())
			Expect(warnings.take()).To(Equal([]string{unsanitised}))
		},
		Entry("the tutorial's site", spec{
			Markdowns: pages{"SUMMARY.md": "# Summary\n\n- [Page1](page1.md)\n", "page1.md": "# Page 1\n"}, ViewerImage: "peaceiris/mdbook:latest",
		}),
		Entry("SUMMARY.md in a ConfigMap", spec{
			Markdowns: onePage, Engine: viewv1.EngineMdBook,
			ContentFrom: []viewv1.ContentSource{{ConfigMap: viewv1.ConfigMapSource{Name: "rest"}}},
		}),
	)

	It("warn about problems that readers would notice, with page and line", func(ctx context.Context) {
		Expect(create(ctx, spec{Markdowns: pages{
			"SUMMARY.md": "- [A](a.md)\n", "a.md": "# A\n\n[b](nope.md)\n[c](#nope)\n![d](d.png)\n", "z.md": "",
		}})).To(Succeed())
		Expect(warnings.take()).To(Equal([]string{
			"spec.markdowns[a.md]: line 3: link nope.md leads to a missing file",
			"spec.markdowns[a.md]: line 4: link #nope leads to #nope, which this page does not have",
			"spec.markdowns[a.md]: line 5: image d.png leads to a missing file",
			"spec.markdowns[z.md]: no entry of SUMMARY.md leads to this page",
		}))
	})

	It("give at most twenty warnings, each of at most 200 characters", func(ctx context.Context) {
		Expect(create(ctx, spec{Markdowns: pages{"a.md": strings.Repeat("[x](./"+strings.Repeat("é", 300)+".md)\n\n", 100)}})).To(Succeed())
		got := warnings.take()
		Expect(got).To(HaveLen(21))
		for n, text := range got[:20] {
			Expect([]rune(text)).To(HaveLen(200))
			Expect(text).To(HavePrefix(fmt.Sprintf("spec.markdowns[a.md]: line %d: ", 2*n+1)))
			Expect(text).To(HaveSuffix("…"))
		}
		Expect(got[20]).To(Equal("and 80 more"))
	})

	It("warn that a ConfigMap must contain the files to which SUMMARY.md links", func(ctx context.Context) {
		rest := []viewv1.ContentSource{{ConfigMap: viewv1.ConfigMapSource{Name: "rest"}}}
		Expect(create(ctx, spec{Markdowns: pages{"SUMMARY.md": "# T\n\n- [A](a.md)\n- [B](b.md)\n"}, ContentFrom: rest})).To(Succeed())
		Expect(warnings.take()).To(Equal([]string{"spec.markdowns[SUMMARY.md]: 2 links lead to files that contentFrom must provide; the first is a.md in line 3"}))
		Expect(create(ctx, spec{Markdowns: pages{"SUMMARY.md": "# T\n\n- [A](a.md)\n"}, ContentFrom: rest})).To(Succeed())
		Expect(warnings.take()).To(Equal([]string{"spec.markdowns[SUMMARY.md]: line 3 links to a.md, which contentFrom must provide"}))
	})

	It("warn that mdBook serves only at the root", func(ctx context.Context) {
		Expect(create(ctx, spec{Markdowns: pages{"SUMMARY.md": "- [A](a.md)", "a.md": ""}, Engine: viewv1.EngineMdBook, BasePath: "/docs/"})).To(Succeed())
		Expect(warnings.take()).To(Equal([]string{unsanitised, "spec.basePath: ignored, because mdBook serves only at /"}))
	})

	DescribeTable("refuse",
		func(ctx context.Context, s spec, want ...any) {
			Expect(refusals(create(ctx, s))).To(ConsistOf(want...))
		},
		Entry("a link of SUMMARY.md to a missing page", spec{
			Markdowns: pages{"SUMMARY.md": "# Summary\n\n- [1](page1.md)\n- [2](page2.md)\n\n---\n\n- [3](page3.md)\n", "page1.md": "", "page2.md": ""},
		}, "spec.markdowns[SUMMARY.md]: Invalid value: line 8: links to page3.md, which is not in markdowns"),
		Entry("an invalid SUMMARY.md, even if there are ConfigMaps", spec{
			Markdowns:   pages{"SUMMARY.md": "- [1](a.md)\n- text\n- [1](a.md)\n", "a.md": ""},
			ContentFrom: []viewv1.ContentSource{{ConfigMap: viewv1.ConfigMapSource{Name: "rest"}}},
		}, "spec.markdowns[SUMMARY.md]: Invalid value: line 2: a list item must begin with a link: - [Title](page.md), or - [Title]() for a page that is not written yet",
			"spec.markdowns[SUMMARY.md]: Invalid value: line 3: links to a.md, as line 1 does; a page can have only one entry"),
		Entry("mdBook without SUMMARY.md", spec{Markdowns: onePage, Engine: viewv1.EngineMdBook},
			"spec.markdowns[SUMMARY.md]: Required value: mdBook needs SUMMARY.md"),
		Entry("an image called mdbook without SUMMARY.md", spec{Markdowns: onePage, ViewerImage: "peaceiris/mdbook:0.4.10"},
			"spec.markdowns[SUMMARY.md]: Required value: mdBook needs SUMMARY.md"),
		Entry("links that mdBook does not understand, with mdBook", spec{Markdowns: pages{"SUMMARY.md": "- [A](/a.md)", "a.md": ""}, Engine: viewv1.EngineMdBook},
			"spec.markdowns[SUMMARY.md]: Invalid value: line 1: links to /a.md, which mdBook does not find; write a.md"),
		Entry("a path in markdowns and binaryAssets", spec{Markdowns: onePage, BinaryAssets: map[string][]byte{"a.md": {0}}},
			"spec.binaryAssets[a.md]: Invalid value: is also in markdowns; remove one of the two entries"),
		Entry("a file that is a directory", spec{Markdowns: onePage, BinaryAssets: map[string][]byte{"a.md/b.png": {0}}},
			"spec.markdowns[a.md]: Invalid value: is the name of a file and of a directory with other files; rename one of them"),
		Entry("two files at one address", spec{Markdowns: pages{"g/README.md": "", "g/index.md": ""}, BinaryAssets: map[string][]byte{"x.html": {0}, "x": {0}}},
			"spec.markdowns[g/index.md]: Invalid value: would be served at /g/, the address of g/README.md; rename one of them"),
		Entry("more content than fits into an object", spec{Markdowns: pages{"a.md": strings.Repeat("x", 700_000)}, BinaryAssets: map[string][]byte{"b.png": make([]byte, 400_000)}},
			"spec.markdowns: Invalid value: has 1100000 bytes together with binaryAssets, more than 1048576: move files into ConfigMaps that contentFrom names"),
		Entry("an image that is not allowed", spec{Markdowns: onePage, ViewerImage: "evil.example/viewer:v1"},
			"spec.viewerImage: Forbidden: the operator does not allow evil.example/viewer:v1; omit viewerImage, or ask the administrator to add the image to --allowed-viewer-images"),
		Entry("an invalid name of an image", spec{Markdowns: onePage, ViewerImage: "ghcr.io/acme/viewer:v1:v2"},
			`spec.viewerImage: Invalid value: "ghcr.io/acme/viewer:v1:v2": is not the name of an image`),
		Entry("invalid sources of content", spec{ContentFrom: []viewv1.ContentSource{
			{ConfigMap: viewv1.ConfigMapSource{Name: "Up"}},
			{ConfigMap: viewv1.ConfigMapSource{Name: "x"}, Path: "p"},
			{ConfigMap: viewv1.ConfigMapSource{Name: "x"}, Path: "p"},
			{ConfigMap: viewv1.ConfigMapSource{Name: "y", Items: []viewv1.ContentItem{{Key: "a b"}, {Key: "c.md"}, {Key: "d", Path: "c.md"}, {Key: "e", Path: "f/g.md"}, {Key: "h", Path: "f/g.md"}}}},
		}},
			ContainSubstring(`spec.contentFrom[0].configMap.name: Invalid value: "Up": a lowercase RFC 1123 subdomain`),
			`spec.contentFrom[2].configMap.name: Duplicate value: "x"`,
			ContainSubstring(`spec.contentFrom[3].configMap.items[0].key: Invalid value: "a b": a valid config key must consist of`),
			`spec.contentFrom[3].configMap.items[2].path: Duplicate value: "c.md"`,
			`spec.contentFrom[3].configMap.items[4].path: Duplicate value: "f/g.md"`),
	)

	It("refuse names and labels that the API would refuse in the children", func(ctx context.Context) {
		className, long := "Up", strings.Repeat("x", 64)
		got := refusals(create(ctx, spec{
			Markdowns: onePage,
			Service:   &viewv1.ServiceSettings{Annotations: map[string]string{"a b": ""}},
			Ingress: &viewv1.IngressSettings{
				Host: "*.example.com", ClassName: &className, TLSSecretName: "Up", Annotations: map[string]string{"-": ""},
			},
			NetworkPolicy: &viewv1.NetworkPolicySettings{From: []viewv1.NetworkPolicyPeer{
				{}, {PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b c"}}},
				{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}},
			}},
			Resources: &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}, Limits: corev1.ResourceList{"cpu": resource.MustParse("1")},
			},
			Pod: &viewv1.PodSettings{
				Labels:                    map[string]string{"a": long, "app.kubernetes.io/instance": "x", "view.koboshi.dev/content": "x"},
				Annotations:               map[string]string{"a/b/c": ""},
				NodeSelector:              map[string]string{"a": "b c"},
				TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: "DoNotSchedule", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b c"}}}},
				PriorityClassName:         "Up",
				ImagePullSecrets:          []corev1.LocalObjectReference{{Name: "Up"}},
			},
		}))
		Expect(got).To(ConsistOf(
			HavePrefix("spec.service.annotations: Invalid value: \"a b\""),
			HavePrefix("spec.ingress.host: Invalid value: \"*.example.com\""),
			HavePrefix("spec.ingress.className: Invalid value: \"Up\""),
			HavePrefix("spec.ingress.tlsSecretName: Invalid value: \"Up\""),
			HavePrefix("spec.ingress.annotations: Invalid value: \"-\""),
			"spec.networkPolicy.from[0]: Required value: must have a podSelector or a namespaceSelector; the selector {} selects everything",
			HavePrefix("spec.networkPolicy.from[1].podSelector.matchLabels: Invalid value: \"b c\""),
			HavePrefix("spec.networkPolicy.from[2].namespaceSelector.matchExpressions[0].operator: Invalid value: \"Near\""),
			"spec.resources.requests[cpu]: Invalid value: \"2\": must not be more than the limit of 1",
			HavePrefix("spec.pod.labels: Invalid value: \"xxxx"),
			"spec.pod.labels[app.kubernetes.io/instance]: Forbidden: is a label that the operator sets itself; choose another name",
			"spec.pod.labels[view.koboshi.dev/content]: Forbidden: is a label that the operator sets itself; choose another name",
			HavePrefix("spec.pod.annotations: Invalid value: \"a/b/c\""),
			HavePrefix("spec.pod.nodeSelector: Invalid value: \"b c\""),
			HavePrefix("spec.pod.topologySpreadConstraints[0].labelSelector.matchLabels: Invalid value: \"b c\""),
			HavePrefix("spec.pod.priorityClassName: Invalid value: \"Up\""),
			HavePrefix("spec.pod.imagePullSecrets[0].name: Invalid value: \"Up\""),
		))
	})

	It("refuse routes that the API would refuse", func(ctx context.Context) {
		Expect(refusals(create(ctx, spec{Markdowns: onePage, HTTPRoute: &viewv1.HTTPRouteSettings{
			ParentRefs: []viewv1.GatewayRef{{Name: "Up"}, {Name: "a", Namespace: "b.c", SectionName: "D"}, {Name: "e"}, {Name: "e"}},
			Hostnames:  []string{"10.0.0.1", "Up", "a.example", "a.example"}, Annotations: map[string]string{" ": ""},
		}}))).To(ConsistOf(
			HavePrefix("spec.httpRoute.parentRefs[0].name: Invalid value: \"Up\""),
			HavePrefix("spec.httpRoute.parentRefs[1].namespace: Invalid value: \"b.c\""),
			HavePrefix("spec.httpRoute.parentRefs[1].sectionName: Invalid value: \"D\""),
			"spec.httpRoute.parentRefs[3]: Duplicate value: \"e\"",
			"spec.httpRoute.hostnames[0]: Invalid value: \"10.0.0.1\": must be a DNS name, not an IP address",
			HavePrefix("spec.httpRoute.hostnames[1]: Invalid value: \"Up\""),
			"spec.httpRoute.hostnames[3]: Duplicate value: \"a.example\"",
			HavePrefix("spec.httpRoute.annotations: Invalid value: \" \""),
		))
	})

	It("report all errors at once, but at most fifty", func(ctx context.Context) {
		got := refusals(create(ctx, spec{
			Markdowns: pages{"SUMMARY.md": strings.Repeat("- text\n", 100)}, ViewerImage: "evil.example/x",
		}))
		Expect(got).To(HaveLen(51))
		Expect(got[50]).To(Equal("spec: Invalid value: and 51 more"))
	})

	It("do not change the error messages of the schema", func(ctx context.Context) {
		many := int32(51)
		Expect(refusals(create(ctx, spec{Markdowns: onePage, Replicas: &many}))).To(ConsistOf(
			"spec.replicas: Invalid value: 51: spec.replicas in body should be less than or equal to 50"))
		Expect(refusals(create(ctx, spec{}))).To(ConsistOf(ContainSubstring("markdowns or contentFrom must contain at least one file")))
	})

	It("accept an object of the maximum size, which can then be labelled and changed", func(ctx context.Context) {
		v := view(namespace, pages{})
		// The pages are mostly text. With the race detector, headings take so long to read that a
		// busy machine does not answer in time; TestHostilePagesTakeLinearTime reads only headings.
		text := "# A *b*\n\n" + strings.Repeat("word ", 94) + "."
		for i := range 1999 {
			v.Spec.Markdowns[fmt.Sprintf("part%d/page%d.md", i/100, i)] = text
		}
		v.Spec.Markdowns["a.md"] = ""
		inTime(func() error { return api.Create(ctx, v) })
		v.Labels = map[string]string{"a": "b"}
		inTime(func() error { return api.Update(ctx, v) })
		v.Spec.Markdowns["a.md"] = "[x](x.md)"
		inTime(func() error { return api.Update(ctx, v) })
		Expect(warnings.take()).To(Equal([]string{"spec.markdowns[a.md]: line 1: link x.md leads to a missing file"}))
	})

	It("check an update in the same way as a creation", func(ctx context.Context) {
		v := view(namespace, pages{"SUMMARY.md": "- [A](a.md)", "a.md": ""})
		Expect(api.Create(ctx, v)).To(Succeed())
		v.Spec.Markdowns["SUMMARY.md"] = "- [A](b.md)"
		Expect(refusals(api.Update(ctx, v))).To(ConsistOf(
			"spec.markdowns[SUMMARY.md]: Invalid value: line 1: links to b.md, which is not in markdowns"))
		warnings.take()
		v.Spec.Markdowns["a.md"], v.Spec.Markdowns["SUMMARY.md"] = "[x](x.md)", "- [A](a.md)"
		Expect(api.Update(ctx, v)).To(Succeed())
		Expect(warnings.take()).To(Equal([]string{"spec.markdowns[a.md]: line 1: link x.md leads to a missing file"}))
	})
})

// inTime repeats a write until the webhooks answer within their ten seconds. With the race
// detector, they may need longer for a large object while the machine is busy. Any other
// error fails the spec at once.
func inTime(write func() error) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		err := write()
		if err != nil && !strings.Contains(err.Error(), "context deadline exceeded") {
			StopTrying("the write was refused").Wrap(err).Now()
		}
		g.Expect(err).NotTo(HaveOccurred())
	}).WithTimeout(3 * time.Minute).Should(Succeed())
}

// Each object was stored while no webhook was installed.
var _ = Describe("An object that the webhooks would refuse", Serial, func() {
	var bad *viewv1.MarkdownView
	BeforeEach(func(ctx context.Context) {
		bad = view(newNamespace(ctx), pages{"SUMMARY.md": "- [A](a.md)"})
		bad.Spec.BasePath, bad.Spec.ViewerImage = "/x", "evil.example/x:y"
		bad.Finalizers = []string{"example.com/wait"}
		removeHooks(ctx)
		Expect(api.Create(ctx, bad)).To(Succeed())
		restoreHooks(ctx)
		DeferCleanup(func(ctx context.Context) {
			bad.Finalizers = nil
			Expect(client.IgnoreNotFound(api.Update(ctx, bad))).To(Succeed())
		})
		warnings.take()
	})

	It("can be labelled and lose its finalizers, and keeps its spelling", func(ctx context.Context) {
		bad.Labels = map[string]string{"a": "b"}
		Expect(api.Update(ctx, bad)).To(Succeed())
		Expect(bad.Spec.BasePath).To(Equal("/x"))
		bad.Finalizers = nil
		Expect(api.Update(ctx, bad)).To(Succeed())
		Expect(warnings.take()).To(BeEmpty())
	})

	It("can have its status written and its replicas scaled", func(ctx context.Context) {
		bad.Status.Pages = 1
		Expect(api.Status().Update(ctx, bad)).To(Succeed())
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
		Expect(api.SubResource("scale").Update(ctx, bad, client.WithSubResourceBody(scale))).To(Succeed())
		Expect(api.Get(ctx, client.ObjectKeyFromObject(bad), bad)).To(Succeed())
		Expect(bad.Spec.Replicas).To(HaveValue(Equal(int32(3))))
	})

	It("disappears when it is deleted and its finalizers are removed", func(ctx context.Context) {
		Expect(api.Delete(ctx, bad)).To(Succeed())
		Expect(api.Get(ctx, client.ObjectKeyFromObject(bad), bad)).To(Succeed())
		Expect(bad.DeletionTimestamp).NotTo(BeNil())
		bad.Finalizers = nil
		Expect(api.Update(ctx, bad)).To(Succeed())
		Expect(apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(bad), bad))).To(BeTrue())
	})

	It("must be valid when its spec is changed, except for the image that it already had", func(ctx context.Context) {
		bad.Spec.Title = "Other"
		Expect(refusals(api.Update(ctx, bad))).To(ConsistOf(
			"spec.markdowns[SUMMARY.md]: Invalid value: line 1: links to a.md, which is not in markdowns"))
		bad.Spec.Markdowns["a.md"] = ""
		warnings.take()
		Expect(api.Update(ctx, bad)).To(Succeed())
		Expect(warnings.take()).To(Equal([]string{"spec.viewerImage: the operator does not currently allow this image"}))
	})
})

var _ = Describe("While the webhooks do not respond", Serial, func() {
	It("labels can be set and finalizers removed, but no spec can be changed", func(ctx context.Context) {
		v := view(newNamespace(ctx), onePage)
		v.Finalizers = []string{"example.com/wait"}
		Expect(api.Create(ctx, v)).To(Succeed())
		sendHooksNowhere(ctx)
		changed := v.DeepCopy()
		changed.Spec.Title = "Other"
		Eventually(ctx, func() error { return api.Update(ctx, changed, client.DryRunAll) }).Should(MatchError(ContainSubstring("failed calling webhook")))
		v.Labels = map[string]string{"a": "b"}
		Expect(api.Update(ctx, v)).To(Succeed())
		Expect(api.Delete(ctx, v)).To(Succeed())
		Expect(api.Get(ctx, client.ObjectKeyFromObject(v), v)).To(Succeed())
		v.Finalizers = nil
		Expect(api.Update(ctx, v)).To(Succeed())
	})
})
