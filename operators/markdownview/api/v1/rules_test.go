package v1

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const pathRule = `: a path must be relative, have at most 240 bytes, and contain none of the characters \ : * ? " < > | # %; no part of it may be empty, be "." or begin with ".."`

// These paths have 240 and 241 bytes, because é has two bytes.
var (
	pathThatFits    = strings.Repeat("é", 118) + "x.md"
	pathThatDoesNot = pathThatFits + "x"
)

var _ = Describe("A MarkdownView", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("has defaults for some fields, but not for the image", func(ctx context.Context) {
		s := site(namespace, obj{"service": obj{}})
		Expect(api.Create(ctx, s)).To(Succeed())
		Expect(s.Object["spec"]).To(Equal(obj{
			"markdowns": onePage, "replicas": int64(1), "theme": "Auto", "basePath": "/", "language": "en", "service": obj{"type": "ClusterIP"},
		}))
	})

	DescribeTable("is accepted",
		func(ctx context.Context, spec obj) { Expect(api.Create(ctx, site(namespace, spec))).To(Succeed()) },
		Entry("with nested paths that contain any letters", obj{"markdowns": obj{"guide/über uns.md": "", ".hidden/x.md": "", "日本/a b.md": "", "a..b.md": "", "a.md": "x", "…/y.md": ""}}),
		Entry("with a path of 240 bytes", obj{"markdowns": obj{pathThatFits: ""}}),
		Entry("with the maximum number of files", obj{"markdowns": many(2000, func(i int) string { return fmt.Sprintf("dir/page%d.md", i) }, "# x"), "binaryAssets": many(200, func(i int) string { return fmt.Sprintf("img/%d.png", i) }, "AA==")}),
		Entry("with files of ConfigMaps only", obj{"markdowns": nil, "contentFrom": []any{obj{"configMap": obj{"name": "pages"}, "path": "guide/x"}}}),
		Entry("with five replicas", obj{"replicas": int64(5)}),
		Entry("with a base path without the closing slash", obj{"basePath": "/a/b.c~d"}),
		Entry("with an image by digest", obj{"viewerImage": "ghcr.io:443/a/b@sha256:0123456789abcdef"}),
		Entry("with an ingress", obj{"ingress": obj{"host": "docs.example.com"}}),
		Entry("with a route", obj{"httpRoute": obj{"parentRefs": []any{obj{"name": "gateway"}}}}),
		Entry("with a hundred kilobytes in a page", obj{"markdowns": obj{"a.md": long(100_000)}}),
	)

	DescribeTable("cannot have an invalid path in markdowns or binaryAssets",
		func(ctx context.Context, path string) {
			Expect(refusals(api.Create(ctx, site(namespace, obj{"markdowns": obj{"good.md": "", path: ""}})))).To(ConsistOf(
				"spec.markdowns: Invalid value: " + path + pathRule))
			Expect(refusals(api.Create(ctx, site(namespace, obj{"binaryAssets": obj{"good.png": "AA==", path: "AA=="}})))).To(ConsistOf(
				"spec.binaryAssets: Invalid value: " + path + pathRule))
			for _, source := range []struct {
				source obj
				told   any
			}{
				{obj{"configMap": obj{"name": "x"}, "path": path}, HavePrefix("spec.contentFrom[0].path: ")},
				{obj{"configMap": obj{"name": "x", "items": []any{obj{"key": "k", "path": path}}}}, HavePrefix("spec.contentFrom[0].configMap.items[0].path: ")},
			} {
				err := api.Create(ctx, site(namespace, obj{"contentFrom": []any{source.source}}))
				if path == "" && source.source["path"] != nil {
					Expect(err).NotTo(HaveOccurred()) // the default
					Expect(api.DeleteAllOf(ctx, &MarkdownView{}, client.InNamespace(namespace))).To(Succeed())
					continue
				}
				Expect(refusals(err)).To(ConsistOf(source.told))
			}
		},
		Entry("nothing", ""),
		Entry("absolute", "/a.md"),
		Entry("a directory", "a/"),
		Entry("with an empty part", "a//b.md"),
		Entry("with a dot", "./a.md"),
		Entry("with a dot inside", "a/./b.md"),
		Entry("with two dots", "../a.md"),
		Entry("with two dots inside", "a/../b.md"),
		Entry("with two dots at the end", "a/.."),
		Entry("beginning with two dots, like the kubelet's own files", "..data/a.md"),
		Entry("with a part that begins with two dots", "a/..b.md"),
		Entry("with a backslash", `a\b.md`),
		Entry("with a colon", "c:a.md"),
		Entry("with a star", "a*.md"),
		Entry("with a question mark", "a?.md"),
		Entry("with a quote", `a".md`),
		Entry("with an angle bracket", "a<b.md"),
		Entry("with the other angle bracket", "a>b.md"),
		Entry("with a pipe", "a|b.md"),
		Entry("with a hash", "a#b.md"),
		Entry("with a percent sign", "a%20b.md"),
		Entry("with a tab", "a\tb.md"),
		Entry("with a delete", "a\x7fb.md"),
		Entry("longer than 240 bytes", "b/"+long(239)),
		Entry("longer than 240 bytes, of fewer characters", pathThatDoesNot),
	)

	It("cannot have a path with a line break, although the message cannot show the path", func(ctx context.Context) {
		Expect(refusals(api.Create(ctx, site(namespace, obj{"markdowns": obj{"a\nb.md": ""}})))).To(ConsistOf(
			"spec.markdowns: Invalid value: " + strings.TrimPrefix(pathRule, ": ")))
	})

	It("limits the bytes of a path, because file systems do", func(ctx context.Context) {
		Expect(len(pathThatFits)).To(Equal(240))
		Expect(refusals(api.Create(ctx, site(namespace, obj{"markdowns": obj{pathThatDoesNot: ""}})))).To(ConsistOf(
			"spec.markdowns: Invalid value: " + pathThatDoesNot + pathRule))
	})

	DescribeTable("cannot have",
		func(ctx context.Context, spec obj, want ...any) {
			Expect(refusals(api.Create(ctx, site(namespace, spec)))).To(ConsistOf(want...))
		},
		Entry("no file", obj{"markdowns": nil}, "spec: Invalid value: markdowns or contentFrom must contain at least one file"),
		Entry("no file in an empty map", obj{"markdowns": obj{}}, "spec: Invalid value: markdowns or contentFrom must contain at least one file"),
		Entry("assets alone", obj{"markdowns": nil, "binaryAssets": obj{"a.png": "AA=="}, "contentFrom": []any{}}, "spec: Invalid value: markdowns or contentFrom must contain at least one file"),
		Entry("more than 2000 texts", obj{"markdowns": many(2001, func(i int) string { return fmt.Sprintf("page%d.md", i) }, "")}, "spec.markdowns: Too many: 2001: must have at most 2000 items"),
		Entry("more than 200 assets", obj{"binaryAssets": many(201, func(i int) string { return fmt.Sprintf("%d.png", i) }, "AA==")}, "spec.binaryAssets: Too many: 201: must have at most 200 items"),
		Entry("an asset that is not base64", obj{"binaryAssets": obj{"a.png": "?"}}, `spec.binaryAssets.a.png: Invalid value: "?": spec.binaryAssets.a.png in body must be of type byte: "?"`),
		Entry("no replica", obj{"replicas": int64(0)}, "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1"),
		Entry("51 replicas", obj{"replicas": int64(51)}, "spec.replicas: Invalid value: 51: spec.replicas in body should be less than or equal to 50"),
		Entry("an image with a space", obj{"viewerImage": "a b"}, ContainSubstring("spec.viewerImage in body should match")),
		Entry("an image of more than 512 characters", obj{"viewerImage": long(513)}, "spec.viewerImage: Too long: may not be more than 512 bytes"),
		Entry("another engine", obj{"engine": "Jekyll"}, `spec.engine: Unsupported value: "Jekyll": supported values: "Viewer", "MdBook"`),
		Entry("another theme", obj{"theme": "dark"}, `spec.theme: Unsupported value: "dark": supported values: "Auto", "Light", "Dark"`),
		Entry("a title of more than 200 characters", obj{"title": long(201)}, "spec.title: Too long: may not be more than 200 bytes"),
		Entry("a base path without the opening slash", obj{"basePath": "docs/"}, ContainSubstring("spec.basePath in body should match")),
		Entry("a base path with an empty part", obj{"basePath": "//docs"}, ContainSubstring("spec.basePath in body should match")),
		Entry("a base path of more than 200 characters", obj{"basePath": "/" + long(200)}, "spec.basePath: Too long: may not be more than 200 bytes"),
		Entry("a source without a ConfigMap", obj{"contentFrom": []any{obj{"path": "x"}}}, "spec.contentFrom[0].configMap: Required value"),
		Entry("a source without a name", obj{"contentFrom": []any{obj{"configMap": obj{"name": ""}}}}, ContainSubstring("spec.contentFrom[0].configMap.name in body should be at least 1 chars long")),
		Entry("more than 50 sources", obj{"contentFrom": times(51, obj{"configMap": obj{"name": "x"}})}, "spec.contentFrom: Too many: 51: must have at most 50 items"),
		Entry("a key of a ConfigMap twice", obj{"contentFrom": []any{obj{"configMap": obj{"name": "x", "items": []any{obj{"key": "a"}, obj{"key": "a", "path": "b"}}}}}}, `spec.contentFrom[0].configMap.items[1]: Duplicate value: {"key":"a"}`),
		Entry("an ingress and a route", obj{"ingress": obj{"host": "a.example"}, "httpRoute": obj{"parentRefs": []any{obj{"name": "g"}}}}, "spec: Invalid value: ingress and httpRoute cannot be used together"),
		Entry("an ingress without a host", obj{"ingress": obj{}}, "spec.ingress.host: Required value"),
		Entry("a route without a Gateway", obj{"httpRoute": obj{"parentRefs": []any{}}}, "spec.httpRoute.parentRefs: Invalid value: 0: spec.httpRoute.parentRefs in body should have at least 1 items"),
		Entry("another type of Service", obj{"service": obj{"type": "ExternalName"}}, `spec.service.type: Unsupported value: "ExternalName": supported values: "ClusterIP", "NodePort", "LoadBalancer"`),
	)

	DescribeTable("cannot have a name from which no Service name can be made",
		func(ctx context.Context, name string) {
			s := site(namespace, nil)
			s.SetName(name)
			Expect(api.Create(ctx, s)).To(MatchError(ContainSubstring(
				"metadata.name must have at most 56 characters and no dots: the Service is named viewer-<name>, which must be a DNS label of at most 63 characters")))
		},
		Entry("that is too long", long(57)),
		Entry("with a dot", "a.b"),
	)

	It("can have a name of 56 characters", func(ctx context.Context) {
		s := site(namespace, nil)
		s.SetName(long(56))
		Expect(api.Create(ctx, s)).To(Succeed())
	})

	It("is also checked when it is changed", func(ctx context.Context) {
		s := site(namespace, nil)
		Expect(api.Create(ctx, s)).To(Succeed())
		s.Object["spec"].(obj)["markdowns"] = obj{"../a.md": ""}
		Expect(refusals(api.Update(ctx, s))).To(ConsistOf("spec.markdowns: Invalid value: ../a.md" + pathRule))
	})

	It("can be scaled, within its bounds", func(ctx context.Context) {
		s := &MarkdownView{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "site"}, Spec: MarkdownViewSpec{Markdowns: map[string]string{"a.md": ""}}}
		Expect(api.Create(ctx, s)).To(Succeed())
		scale := &autoscalingv1.Scale{}
		Expect(api.SubResource("scale").Get(ctx, s, scale)).To(Succeed())
		Expect(scale.Spec.Replicas).To(Equal(int32(1)))
		scale.Spec.Replicas = 4
		Expect(api.SubResource("scale").Update(ctx, s, client.WithSubResourceBody(scale))).To(Succeed())
		view := &MarkdownView{}
		Expect(api.Get(ctx, client.ObjectKeyFromObject(s), view)).To(Succeed())
		Expect(view.Spec.Replicas).To(HaveValue(Equal(int32(4))))
		view.Status.Replicas, view.Status.Selector = 3, "a=b"
		Expect(api.Status().Update(ctx, view)).To(Succeed())
		Expect(api.SubResource("scale").Get(ctx, s, scale)).To(Succeed())
		Expect(scale.Status).To(Equal(autoscalingv1.ScaleStatus{Replicas: 3, Selector: "a=b"}))
		scale.Spec.Replicas = 51
		Expect(refusals(api.SubResource("scale").Update(ctx, s, client.WithSubResourceBody(scale)))).To(ConsistOf(
			"spec.replicas: Invalid value: 51: spec.replicas in body should be less than or equal to 50"))
	})

	It("has a spec and a status that are written separately", func(ctx context.Context) {
		s := site(namespace, nil)
		s.Object["status"] = obj{"pages": int64(7)}
		Expect(api.Create(ctx, s)).To(Succeed())
		view := &MarkdownView{}
		Expect(api.Get(ctx, client.ObjectKeyFromObject(s), view)).To(Succeed())
		Expect(view.Status.Pages).To(BeZero())
		view.Status.Pages, view.Spec.Title = 3, "Other"
		Expect(api.Status().Update(ctx, view)).To(Succeed())
		Expect(view.Status.Pages).To(Equal(int32(3)))
		Expect(view.Spec.Title).To(BeEmpty())
		Expect(view.Generation).To(Equal(int64(1)))
	})

	It("shows 0 in columns for which no number was written", func(ctx context.Context) {
		s := site(namespace, nil)
		Expect(api.Create(ctx, s)).To(Succeed())
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"pages":1}}`))
		Expect(api.Status().Patch(ctx, s, patch)).To(Succeed())
		Expect(row(ctx, namespace)).To(And(HaveKeyWithValue("Ready", 0.0), HaveKeyWithValue("[Problems]", 0.0)))
	})

	It("is printed as a row", func(ctx context.Context) {
		view := &MarkdownView{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "site"},
			Spec:       MarkdownViewSpec{Markdowns: map[string]string{"a.md": ""}},
		}
		Expect(api.Create(ctx, view)).To(Succeed())
		view.Status = MarkdownViewStatus{
			Conditions: []metav1.Condition{{Type: ConditionAvailable, Status: metav1.ConditionTrue, Reason: ReasonOK, LastTransitionTime: metav1.Now()}},
			URL:        "http://docs.example.com/", Pages: 12, ReadyReplicas: 1, ProblemCount: 2,
		}
		Expect(api.Status().Update(ctx, view)).To(Succeed())
		Expect(row(ctx, namespace)).To(Equal(obj{
			"Name": "site", "Replicas": 1.0, "Ready": 1.0, "Available": "True", "Pages": 12.0, "[Problems]": 2.0, "URL": "http://docs.example.com/",
		}))
	})
})

// row returns the values that kubectl get shows, except the age, keyed by column. The names
// of columns that only -o wide shows are in brackets.
func row(ctx context.Context, namespace string) obj {
	GinkgoHelper()
	config := rest.CopyConfig(cfg)
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	c, err := rest.UnversionedRESTClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	body, err := c.Get().AbsPath("apis", GroupVersion.Group, GroupVersion.Version, "namespaces", namespace, "markdownviews").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	var table metav1.Table
	Expect(json.Unmarshal(body, &table)).To(Succeed())
	Expect(table.Rows).To(HaveLen(1))
	cells := obj{}
	for i, column := range table.ColumnDefinitions {
		switch {
		case column.Type == "date":
		case column.Priority > 0:
			cells["["+column.Name+"]"] = table.Rows[0].Cells[i]
		default:
			cells[column.Name] = table.Rows[0].Cells[i]
		}
	}
	return cells
}
