package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

// pixel is the smallest PNG.
var pixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
	"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82")

var guide = map[string]string{
	"SUMMARY.md": "# Guide\n\n[Welcome](README.md)\n\n# First part\n\n- [Install](install/linux.md)\n  - [Grüße](install/grüße.md)\n- [Later]()\n",
	"README.md": "# Welcome\n\nSee [how to install](install/linux.md#on-debian).\n\n| a | b |\n|---|--:|\n| 1 | ~~2~~ |\n\n" +
		"![A pixel](images/pixel.png)\n\n```go\nfunc main() {}\n```\n",
	"install/linux.md": "# Linux\n\n## On Debian\n\n- [x] done\n\nBack to [the start](../README.md).\n",
	"install/grüße.md": "# Grüße\n\nAus der Ferne.\n",
}

// elements returns the elements of a page that have this name.
func elements(t *testing.T, p page, name string) (found []*html.Node) {
	t.Helper()
	root := must[*html.Node](t)(html.Parse(bytes.NewReader(p.text)))
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			found = append(found, n)
		}
	}
	return found
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.TrimSpace(b.String())
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// linkTo follows the link with this text.
func linkTo(t *testing.T, at string, p page, words string) (string, page) {
	t.Helper()
	for _, a := range elements(t, p, "a") {
		if strings.Contains(text(a), words) {
			base := must[*url.URL](t)(url.Parse(at))
			target := must[*url.URL](t)(base.Parse(attribute(a, "href")))
			return target.String(), get(t, target.String())
		}
	}
	t.Fatalf("%s has no link %q", at, words)
	return "", page{}
}

// The operator that the MarkdownView tutorial builds has no test that checks whether a page is
// rendered. This missing test is defect 24 in our list of that operator's defects (see
// internal/controller/defects_test.go).
func TestPagesAreRenderedFromOneResource(t *testing.T) {
	view := newView(t, viewv1.MarkdownViewSpec{
		Replicas: new(int32(2)), Markdowns: guide, BinaryAssets: map[string][]byte{"images/pixel.png": pixel},
	})
	site := publish(t, view)
	home := get(t, site)
	if home.status != http.StatusOK || !strings.HasPrefix(home.header.Get("Content-Type"), "text/html") {
		t.Fatalf("the home page: %d %s", home.status, home.header)
	}
	if h1 := elements(t, home, "h1"); len(h1) != 1 || !strings.HasPrefix(text(h1[0]), "Welcome") {
		t.Errorf("headings of the home page: %d", len(h1))
	}
	if len(elements(t, home, "table")) != 1 || len(elements(t, home, "del")) != 1 || len(elements(t, home, "pre")) != 1 {
		t.Errorf("the table, the line or the code is missing:\n%s", home.text)
	}
	linux, page := linkTo(t, site, home, "how to install")
	if !strings.HasSuffix(linux, "#on-debian") || !bytes.Contains(page.text, []byte(`id="on-debian"`)) {
		t.Errorf("%s does not lead to the heading", linux)
	}
	if _, back := linkTo(t, linux, page, "the start"); !bytes.Contains(back.text, []byte("how to install")) {
		t.Error("the link back does not lead to the home page")
	}
	if at, page := linkTo(t, site, home, "Grüße"); page.status != http.StatusOK || !bytes.Contains(page.text, []byte("Aus der Ferne")) {
		t.Errorf("%s: %d", at, page.status)
	}
	for _, img := range elements(t, home, "img") {
		if attribute(img, "alt") != "A pixel" {
			continue
		}
		image := get(t, must[*url.URL](t)(must[*url.URL](t)(url.Parse(site+"/")).Parse(attribute(img, "src"))).String())
		if !bytes.Equal(image.text, pixel) || image.header.Get("Content-Type") != "image/png" {
			t.Errorf("the image is not served as it was given: %d %s", image.status, image.header)
		}
	}
	if missing := get(t, site+"/nowhere.html"); missing.status != http.StatusNotFound {
		t.Errorf("a missing page has the status %d", missing.status)
	}
	want := viewv1.MarkdownViewStatus{Pages: 3, Replicas: 2, ReadyReplicas: 2, URL: "http://viewer-handbook." + view.Namespace + ".svc/"}
	got := view.Status
	if got.Pages != want.Pages || got.ReadyReplicas != want.ReadyReplicas || got.URL != want.URL || got.ContentHash == "" {
		t.Errorf("status %+v", got)
	}
}

func TestSiteIsServedBelowItsBasePath(t *testing.T) {
	view := newView(t, viewv1.MarkdownViewSpec{Markdowns: guide, BasePath: "/team/guide"})
	site := publish(t, view)
	if view.Spec.BasePath != "/team/guide/" {
		t.Errorf("the webhook did not change the base path %q", view.Spec.BasePath)
	}
	home := get(t, site+"/team/guide/")
	if home.status != http.StatusOK {
		t.Fatalf("%d", home.status)
	}
	at, page := linkTo(t, site+"/team/guide/", home, "how to install")
	if page.status != http.StatusOK || !strings.HasPrefix(at, site+"/team/guide/install/linux") {
		t.Errorf("%s: %d", at, page.status)
	}
}

func TestLinkOfSummaryToNoPageIsRefusedWithItsLine(t *testing.T) {
	view := newView(t, viewv1.MarkdownViewSpec{Markdowns: map[string]string{
		"SUMMARY.md": "# S\n\n- [Here](here.md)\n- [Not here](nothere.md)\n", "here.md": "# Here\n",
	}})
	err := world.Create(t.Context(), view)
	if err == nil || !strings.Contains(err.Error(), "nothere.md") || !strings.Contains(err.Error(), "4") {
		t.Errorf("the site is not refused because of line 4 of SUMMARY.md: %v", err)
	}
}

func TestContentOfConfigMapsIsServedAndSoIsItsEdit(t *testing.T) {
	view := newView(t, viewv1.MarkdownViewSpec{
		Markdowns: map[string]string{"README.md": "# Start\n\n[News](news/today.md)\n"},
		ContentFrom: []viewv1.ContentSource{
			{Path: "news", ConfigMap: viewv1.ConfigMapSource{Name: "news"}},
			{ConfigMap: viewv1.ConfigMapSource{Name: "pictures", Items: []viewv1.ContentItem{{Key: "p", Path: "deep/down/pixel.png"}}}},
		},
	})
	news := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: view.Namespace, Name: "news"},
		Data:       map[string]string{"today.md": "# Today\n\nIt rains.\n"},
	}
	pictures := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: view.Namespace, Name: "pictures"},
		BinaryData: map[string][]byte{"p": pixel, "other": pixel},
	}
	if err := world.Create(t.Context(), news); err != nil {
		t.Fatal(err)
	}
	if err := world.Create(t.Context(), pictures); err != nil {
		t.Fatal(err)
	}
	site := publish(t, view)
	if got := get(t, site+"/deep/down/pixel.png"); !bytes.Equal(got.text, pixel) {
		t.Errorf("the picture has the status %d", got.status)
	}
	if got := get(t, site+"/other"); got.status != http.StatusNotFound {
		t.Errorf("a key that is not in items has the status %d", got.status)
	}
	if _, today := linkTo(t, site, get(t, site), "News"); !bytes.Contains(today.text, []byte("It rains.")) {
		t.Errorf("%s", today.text)
	}
	news.Data["today.md"] = "# Today\n\nThe sun is out.\n"
	if err := world.Update(t.Context(), news); err != nil {
		t.Fatal(err)
	}
	await(t, "the edit to be served", func(ctx context.Context) error {
		today, err := read(ctx, site+"/news/today.html")
		if err == nil && !bytes.Contains(today.text, []byte("The sun is out.")) {
			err = fmt.Errorf("status %d, without the edit", today.status)
		}
		return err
	})
}
