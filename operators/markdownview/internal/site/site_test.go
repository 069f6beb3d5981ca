package site_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/site"
)

// small is a book with one example of everything.
var small = map[string]string{
	"SUMMARY.md":        "# The Book\n\n[Start](README.md)\n\n# Part One\n\n- [Install](guide/README.md)\n  - [Linux & co](guide/linux.md)\n- [Draft]()\n\n---\n\n[End](end.md)\n",
	"README.md":         "# Welcome\n\nHello. [Linux](guide/linux.md#needs)\n",
	"guide/README.md":   "# Install\n\nHow to.\n",
	"guide/linux.md":    "# Linux\n\n## Needs\n\nA kernel with namespaces.\n\n## Steps\n\nDownload the zebra.\n",
	"end.md":            "No heading here, only <b>text</b>.\n",
	"img/a b.svg":       "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>",
	"img/photo.png":     "\x89PNG\r\n",
	"files/app.js":      "alert(1)",
	"files/app.css":     "body{display:none}",
	"files/page.html":   "<script>alert(1)</script>",
	"files/page.xhtml":  "<html xmlns=\"http://www.w3.org/1999/xhtml\"><script>alert(1)</script></html>",
	"files/data.xml":    "<?xml-stylesheet href=\"x\"?><x/>",
	"files/doc.pdf":     "%PDF-1.7",
	"files/unknown.exe": "MZ",
	"files/values.yaml": "a: 1\n",
}

func filesOf(texts map[string]string) []book.File {
	var files []book.File
	for path, text := range texts {
		files = append(files, book.File{Path: path, Data: []byte(text)})
	}
	return files
}

func build(t testing.TB, texts map[string]string, o site.Options) *site.Site {
	t.Helper()
	s, err := site.Build(filesOf(texts), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func plain(t testing.TB, r *site.Resource) string {
	t.Helper()
	if r == nil {
		t.Fatal("there is no such resource")
	}
	return bodyOf(t, r.Plain.Body)
}

func bodyOf(t testing.TB, b site.Body) string {
	t.Helper()
	var out bytes.Buffer
	n, err := b.WriteTo(&out)
	if err != nil || n != int64(b.Size()) || out.Len() != b.Size() {
		t.Fatalf("wrote %d bytes of %d, error %v", n, b.Size(), err)
	}
	return out.String()
}

func header(e site.Encoded, key string) string {
	for _, h := range e.Headers {
		if http.CanonicalHeaderKey(key) == h.Key {
			return strings.Join(h.Values, ", ")
		}
	}
	return ""
}

func TestEveryFileIsServedWhereTheBookSays(t *testing.T) {
	s := build(t, small, site.Options{BasePath: "/docs"})
	for path := range small {
		if path == "SUMMARY.md" {
			continue
		}
		r := s.Find("/docs/" + book.URL(path))
		if r == nil {
			t.Errorf("%s is not served", path)
			continue
		}
		if !book.IsPage(path) && plain(t, r) != small[path] {
			t.Errorf("the content of %s is not served unchanged: %q", path, plain(t, r))
		}
	}
	if s.Find("/docs/SUMMARY.md") != nil || s.Find("/") != nil || s.Find("/docs") != nil || s.Find("/docs/guide") != nil {
		t.Error("an address that belongs to no file is served")
	}
}

func TestAFirstPageThatIsNoIndexIsServedAtTheRootToo(t *testing.T) {
	s := build(t, map[string]string{"SUMMARY.md": "- [A](sub/a.md)", "sub/a.md": "# A\n\n[b](b.md)", "sub/b.md": "# B"}, site.Options{})
	home := plain(t, s.Find("/"))
	if home != plain(t, s.Find("/sub/a.html")) || !strings.Contains(home, `href="/sub/b.html"`) {
		t.Errorf("the home page is not that page with links that work from both: %s", home)
	}
}

func TestOtherSpellingsOfAnAddressLeadToThePage(t *testing.T) {
	s := build(t, small, site.Options{BasePath: "/docs/"})
	for from, want := range map[string]string{
		"/docs":                  "/docs/",
		"/docs/index.html":       "/docs/",
		"/docs/README.md":        "/docs/",
		"/docs/guide":            "/docs/guide/",
		"/docs/guide/index.html": "/docs/guide/",
		"/docs/guide/linux":      "/docs/guide/linux.html",
		"/docs/guide/linux.md":   "/docs/guide/linux.html",
	} {
		if to, ok := s.Redirect(from); !ok || to != want {
			t.Errorf("%s leads to %q, want %q", from, to, want)
		}
	}
	if to, ok := s.Redirect("//evil.example/"); ok {
		t.Errorf("an address on another host leads to %q", to)
	}
}

func TestThePageShowsWhereItIsInTheBook(t *testing.T) {
	s := build(t, small, site.Options{})
	page := plain(t, s.Find("/guide/linux.html"))
	for what, want := range map[string]string{
		"title":       "<title>Linux · The Book</title>",
		"current":     `<a href="/guide/linux.html" aria-current="page"><span class="mdv-number">1.1.</span> Linux &amp; co</a>`,
		"part":        `<li class="mdv-part">Part One</li>`,
		"draft":       `<span class="mdv-draft" title="Not written yet"><span class="mdv-number">2.</span> Draft</span>`,
		"separator":   `<li class="mdv-rule"><hr></li>`,
		"folding":     `<details open><summary aria-label="Pages of Install"></summary>`,
		"prev":        `<a class="mdv-prev" rel="prev" href="/guide/"><span>Previous</span>Install</a>`,
		"next":        `<a class="mdv-next" rel="next" href="/end.html"><span>Next</span>End</a>`,
		"breadcrumbs": `<ol><li><a href="/guide/">Install</a></li><li aria-current="page">Linux</li></ol>`,
		"contents":    `<li><a href="#needs">Needs</a></li><li><a href="#steps">Steps</a></li>`,
		"skip link":   `<a class="mdv-skip" href="#mdv:main">`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s: no %s in the page", what, want)
		}
	}
	if end := plain(t, s.Find("/end.html")); !strings.Contains(end, "<h1>End</h1>") || strings.Contains(end, "mdv-toc") {
		t.Errorf("the name of a page without headings is not its heading: %s", end)
	}
	nav, _, _ := strings.Cut(page, "</nav>")
	if n := strings.Count(nav, "aria-current"); n != 1 {
		t.Errorf("%d entries are marked as the current page", n)
	}
}

// large returns a book whose navigation is large enough to be shared.
func large(pages int) map[string]string {
	texts := map[string]string{"README.md": "# Home\n"}
	for i := range pages {
		dir := fmt.Sprintf("part-%02d/chapter-%d", i/50, i/10)
		texts[fmt.Sprintf("%s/page-%d.md", dir, i)] = fmt.Sprintf("# Page %d\n\nThe text of page %d, with a word of its own: w%dx.\n", i, i, i)
	}
	return texts
}

func TestAPageOfSharedPiecesIsTheSamePlainAndCompressed(t *testing.T) {
	for name, texts := range map[string]map[string]string{"small": small, "large": large(400)} {
		s := build(t, texts, site.Options{})
		for path := range texts {
			if !book.IsPage(path) {
				continue
			}
			url := "/" + book.URL(path)
			r := s.Find(url)
			page := plain(t, r)
			zipped := bodyOf(t, r.Gzip.Body)
			reader, err := gzip.NewReader(strings.NewReader(zipped))
			if err != nil {
				t.Fatalf("%s %s: %v", name, url, err)
			}
			reader.Multistream(false) // browsers read one member
			unzipped, err := io.ReadAll(reader)
			if err != nil || string(unzipped) != page {
				t.Fatalf("%s %s: the compressed page differs from the plain page (%d bytes, want %d), error %v", name, url, len(unzipped), len(page), err)
			}
			_, nav, _ := strings.Cut(page, `id="mdv:nav"`)
			nav, _, _ = strings.Cut(nav, "</nav>")
			if n := strings.Count(nav, ` aria-current="page"`); n != 1 || !strings.Contains(nav, `href="`+url+`" aria-current="page"`) {
				t.Fatalf("%s %s: %d marks in the navigation, or not at the page", name, url, n)
			}
			if _, err := html.Parse(strings.NewReader(page)); err != nil {
				t.Fatalf("%s %s: %v", name, url, err)
			}
		}
	}
}

func TestInALargeBookOnlyTheWayToThePageIsUnfolded(t *testing.T) {
	s := build(t, large(400), site.Options{})
	page := plain(t, s.Find("/part-03/chapter-17/page-171.html"))
	if n := strings.Count(page, "<details open>"); n != 2 {
		t.Errorf("%d sections are open, want the 2 that the page is in", n)
	}
}

func TestTagsTellPagesAndEncodingsApart(t *testing.T) {
	s := build(t, large(400), site.Options{})
	seen := map[string]string{}
	for path := range large(400) {
		r := s.Find("/" + book.URL(path))
		for _, e := range []site.Encoded{r.Plain, r.Gzip} {
			if other, ok := seen[e.Tag]; ok {
				t.Fatalf("%s and %s have the same tag", path, other)
			}
			seen[e.Tag] = path
			if header(e, "ETag") != e.Tag || !strings.HasPrefix(e.Tag, `"`) {
				t.Fatalf("%s: header %q, tag %q", path, header(e, "ETag"), e.Tag)
			}
		}
	}
	changed := large(400)
	changed["part-03/chapter-17/page-171.md"] += "More.\n"
	if again := build(t, changed, site.Options{}); again.Find("/part-03/chapter-17/page-171.html").Plain.Tag == s.Find("/part-03/chapter-17/page-171.html").Plain.Tag {
		t.Error("a changed page kept its tag")
	}
	if again := build(t, large(400), site.Options{}); again.Find("/").Plain.Tag != s.Find("/").Plain.Tag {
		t.Error("the same content has another tag: replicas would disagree")
	}
}

func TestAPageThatCannotBeRenderedShowsItsSourceAndANote(t *testing.T) {
	texts := map[string]string{"README.md": "# Fine\n", "bad.md": "# Bad\n\n" + strings.Repeat("<div>", 3000) + "<script>x</script>"}
	s := build(t, texts, site.Options{})
	if len(s.Failed) != 1 {
		t.Fatalf("failed pages: %v", s.Failed)
	}
	page := plain(t, s.Find("/bad.html"))
	if !strings.Contains(page, "could not be rendered") || !strings.Contains(page, "&lt;script&gt;") || strings.Contains(page, "<script>x") {
		t.Errorf("no note, or no source as text: %.2000s", page)
	}
	if !strings.Contains(plain(t, s.Find("/")), "Fine") {
		t.Error("another page is not rendered")
	}
}

func TestWithoutPagesThereIsNoSite(t *testing.T) {
	for _, texts := range []map[string]string{nil, {"a.png": "x"}, {"SUMMARY.md": "# x"}} {
		if _, err := site.Build(filesOf(texts), site.Options{}); !errors.Is(err, site.ErrNoPages) {
			t.Errorf("with the files %v: error %v", texts, err)
		}
	}
}

func TestOptionsThatCannotBeServedAreRefused(t *testing.T) {
	for _, o := range []site.Options{{BasePath: "docs/"}, {BasePath: "//evil.example"}, {BasePath: "/a b/"}, {BasePath: "/../"}, {BasePath: "/x\"><script>"}, {Theme: "blue"}} {
		if _, err := site.Build(filesOf(small), o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	for given, want := range map[string]string{"": "/", "/": "/", "/docs": "/docs/", "/docs/": "/docs/", "/a/b.c": "/a/b.c/"} {
		if o, err := (site.Options{BasePath: given}).Complete(); err != nil || o.BasePath != want {
			t.Errorf("base path %q became %q, error %v", given, o.BasePath, err)
		}
	}
}

func TestTheThemeOfTheSiteIsOnThePage(t *testing.T) {
	for theme, want := range map[site.Theme]string{"": `<html lang="en">`, site.ThemeDark: `<html lang="en" data-theme="dark" data-default="dark">`} {
		if page := plain(t, build(t, small, site.Options{Theme: theme}).Find("/")); !strings.Contains(page, want) {
			t.Errorf("theme %q: no %s", theme, want)
		}
	}
}

func TestTheOwnFilesOfAnotherVersionAreThoseOfThisOne(t *testing.T) {
	s := build(t, small, site.Options{})
	old := s.Find("/_/style.000000000000.css")
	if old == nil || header(old.Plain, "Cache-Control") != "no-cache" {
		t.Fatalf("a page of another version gets no style sheet, or one that it may keep forever")
	}
	page := plain(t, s.Find("/"))
	_, rest, _ := strings.Cut(page, `<link rel="stylesheet" href="`)
	address, _, _ := strings.Cut(rest, `"`)
	current := s.Find(address)
	if diff := cmp.Diff(plain(t, old), plain(t, current)); diff != "" {
		t.Errorf("the style sheets at the outdated and the current address differ: %s", diff)
	}
	if got := header(current.Plain, "Cache-Control"); !strings.Contains(got, "immutable") {
		t.Errorf("the file with its hash in its name has Cache-Control %q", got)
	}
	if s.Find("/_/other.000000000000.css") != nil {
		t.Error("a file that does not exist is served")
	}
}
