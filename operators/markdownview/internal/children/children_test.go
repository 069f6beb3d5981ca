package children

import (
	"slices"
	"testing"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

func site(change func(*viewv1.MarkdownViewSpec)) *Site {
	view := &viewv1.MarkdownView{}
	view.Name, view.Namespace, view.UID = "site", "ns", "uid"
	change(&view.Spec)
	return &Site{View: view, Title: "Title", Hash: "h", Options: Options{Image: "viewer:1"}}
}

func TestAnImageNamedMdbookIsRunAsMdBook(t *testing.T) {
	for image, want := range map[string]viewv1.Engine{
		"":                            viewv1.EngineViewer,
		"mdbook":                      viewv1.EngineMdBook,
		"peaceiris/mdbook:v0.4.40":    viewv1.EngineMdBook,
		"localhost:5000/a/mdbook":     viewv1.EngineMdBook,
		"a/mdbook@sha256:0123":        viewv1.EngineMdBook,
		"a/mdbook:v1@sha256:0123":     viewv1.EngineMdBook,
		"a/mdbook-viewer:v1":          viewv1.EngineViewer,
		"mdbook/viewer":               viewv1.EngineViewer,
		"mdbook:5000/viewer":          viewv1.EngineViewer,
		"example.org/x@sha256:mdbook": viewv1.EngineViewer,
	} {
		if got := Engine(&viewv1.MarkdownViewSpec{ViewerImage: image}); got != want {
			t.Errorf("%s: %s", image, got)
		}
	}
	if Engine(&viewv1.MarkdownViewSpec{ViewerImage: "mdbook", Engine: viewv1.EngineViewer}) != viewv1.EngineViewer {
		t.Error("spec.engine does not take precedence over the name of the image")
	}
}

// The hash must depend on everything that readers could notice.
func TestTheTemplateHashChangesWithAllThatAViewerIsMadeOf(t *testing.T) {
	seen := map[string]string{}
	for name, s := range map[string]*Site{
		"plain":     site(func(*viewv1.MarkdownViewSpec) {}),
		"theme":     site(func(s *viewv1.MarkdownViewSpec) { s.Theme = viewv1.ThemeDark }),
		"base path": site(func(s *viewv1.MarkdownViewSpec) { s.BasePath = "/a/" }),
		"image":     site(func(s *viewv1.MarkdownViewSpec) { s.ViewerImage = "viewer:2" }),
		"engine":    site(func(s *viewv1.MarkdownViewSpec) { s.Engine = viewv1.EngineMdBook }),
		"annotation": site(func(s *viewv1.MarkdownViewSpec) {
			s.Pod = &viewv1.PodSettings{Annotations: map[string]string{"a": "b"}}
		}),
		"content": func() *Site { s := site(func(*viewv1.MarkdownViewSpec) {}); s.Hash = "i"; return s }(),
		"title":   func() *Site { s := site(func(*viewv1.MarkdownViewSpec) {}); s.Title = "Other"; return s }(),
	} {
		template, hash, err := Template(s)
		if err != nil {
			t.Fatal(err)
		}
		if other, dup := seen[hash]; dup {
			t.Errorf("%s has the same hash as %s", name, other)
		}
		seen[hash] = name
		if template.Labels[TemplateLabel] != hash {
			t.Errorf("%s: label %s", name, template.Labels[TemplateLabel])
		}
		if _, again, _ := Template(s); again != hash {
			t.Errorf("%s has a different hash at the second call", name)
		}
	}
	replicas := site(func(s *viewv1.MarkdownViewSpec) { s.Replicas = new(int32(5)) })
	if _, hash, _ := Template(replicas); seen[hash] != "plain" {
		t.Error("scaling rolls out new viewers")
	}
}

// While one engine replaces the other, one policy must let readers reach the viewers of
// both engines.
func TestTheNetworkPolicyLetsReadersToTheViewersOfBothEngines(t *testing.T) {
	for _, engine := range []viewv1.Engine{viewv1.EngineViewer, viewv1.EngineMdBook} {
		s := site(func(s *viewv1.MarkdownViewSpec) { s.Engine = engine })
		port := NetworkPolicy(s.View).Spec.Ingress[0].Ports[0].Port.StrVal
		template, _, err := Template(s)
		if err != nil {
			t.Fatal(err)
		}
		if name := *template.Spec.Containers[0].Ports[0].Name; port != name {
			t.Errorf("%s: the policy allows the port %q, but the viewers have %q", engine, port, name)
		}
	}
}

func TestAPersonsLabelsDoNotReplaceTheOperators(t *testing.T) {
	s := site(func(s *viewv1.MarkdownViewSpec) {
		s.Pod = &viewv1.PodSettings{Labels: map[string]string{InstanceLabel: "x", TemplateLabel: "x", ContentLabel: "x", "team": "docs"}}
	})
	template, hash, err := Template(s)
	if err != nil {
		t.Fatal(err)
	}
	if l := template.Labels; l[InstanceLabel] != "site" || l[TemplateLabel] != hash || l[ContentLabel] != "h" || l["team"] != "docs" {
		t.Errorf("labels %v", l)
	}
}

func TestATitleIsATextToTheKubeletWhateverIsInIt(t *testing.T) {
	s := site(func(*viewv1.MarkdownViewSpec) {})
	s.Title = "$(PATH) costs $5"
	template, _, err := Template(s)
	if err != nil {
		t.Fatal(err)
	}
	if args := template.Spec.Containers[0].Args; !slices.Contains(args, "--title=$$(PATH) costs $$5") {
		t.Errorf("arguments %q", args)
	}
}

func TestTheURLIsWhereTheSiteIsPublished(t *testing.T) {
	route := &viewv1.HTTPRouteSettings{Hostnames: []string{"h.example", "i.example"}}
	for want, change := range map[string]func(*viewv1.MarkdownViewSpec){
		"http://viewer-site.ns.svc/":     func(*viewv1.MarkdownViewSpec) {},
		"http://viewer-site.ns.svc/a/b/": func(s *viewv1.MarkdownViewSpec) { s.BasePath = "/a/b" },
		"http://viewer-site.ns.svc/c/":   func(s *viewv1.MarkdownViewSpec) { s.HTTPRoute = &viewv1.HTTPRouteSettings{}; s.BasePath = "/c/" },
		"http://i.example/":              func(s *viewv1.MarkdownViewSpec) { s.Ingress = &viewv1.IngressSettings{Host: "i.example"} },
		"https://i.example/d/": func(s *viewv1.MarkdownViewSpec) {
			s.BasePath = "/d/"
			s.Ingress = &viewv1.IngressSettings{Host: "i.example", TLSSecretName: "t"}
		},
		"http://h.example/":   func(s *viewv1.MarkdownViewSpec) { s.HTTPRoute = route },
		"http://h.example/e/": func(s *viewv1.MarkdownViewSpec) { s.HTTPRoute = route; s.BasePath = "/e/" },
	} {
		if got := URL(site(change).View); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	mdbook := site(func(s *viewv1.MarkdownViewSpec) { s.Engine = viewv1.EngineMdBook; s.BasePath = "/a/" })
	if got := URL(mdbook.View); got != "http://viewer-site.ns.svc/" {
		t.Errorf("mdBook, which serves at the root only: %s", got)
	}
}
