package site_test

import (
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/site"
)

func TestPagesHaveNoInlineScriptOrStyleAndAskNobodyElse(t *testing.T) {
	texts := map[string]string{
		"SUMMARY.md": "# <script>alert(1)</script>\n\n- [\"><script>alert(1)</script>](a.md)\n  - [x](b'\"b.md)\n",
		"a.md":       "# <img src=x onerror=alert(1)> \"title\"\n\n## {#\"><script>alert(1)</script>}\n\n## two\n\n<script>alert(1)</script>\n",
		"b'\"b.md":   "# '\"><script>alert(1)</script>\n",
	}
	s := build(t, texts, site.Options{Title: "</title><script>alert(1)</script>"})
	found, err := s.Search("\"><script>alert(1)</script> alert")
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range map[string]string{
		"a": plain(t, s.Find("/a.html")), "b": plain(t, s.Find("/b'\"b.html")), "home": plain(t, s.Find("/")),
		"not found": plain(t, s.NotFound()), "search": plain(t, found),
	} {
		scripts := 0
		tokens := html.NewTokenizer(strings.NewReader(page))
		for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
			token := tokens.Token()
			if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
				continue
			}
			if token.Data == "script" {
				scripts++
			}
			if token.Data == "style" {
				t.Errorf("%s: a style element", name)
			}
			for _, a := range token.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
					t.Errorf("%s: %s", name, token)
				}
				if a.Key == "src" || a.Key == "action" || a.Key == "href" && token.Data == "link" {
					if u, err := url.Parse(a.Val); err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(a.Val, "/") {
						t.Errorf("%s sends a request to another host: %s", name, token)
					}
				}
			}
		}
		if scripts != 2 {
			t.Errorf("%s: %d scripts, want the site's own 2", name, scripts)
		}
	}
}

func TestThePolicyOfPagesAllowsOnlyTheSiteItself(t *testing.T) {
	s := build(t, small, site.Options{})
	for _, r := range []*site.Resource{s.Find("/"), s.Find("/guide/linux.html"), s.NotFound()} {
		for _, e := range []site.Encoded{r.Plain, r.Gzip} {
			policy := header(e, "Content-Security-Policy")
			for _, want := range []string{
				"default-src 'none'", "script-src 'self';", "style-src 'self';", "img-src 'self' data:;", "connect-src 'self';",
				"base-uri 'none'", "form-action 'self'", "frame-ancestors 'self'", "require-trusted-types-for 'script'",
			} {
				if !strings.Contains(policy, want) {
					t.Errorf("no %s in the policy %s", want, policy)
				}
			}
			if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
				t.Errorf("the policy allows too much: %s", policy)
			}
			if header(e, "X-Content-Type-Options") != "nosniff" || header(e, "Referrer-Policy") != "same-origin" {
				t.Errorf("headers: %v", e.Headers)
			}
		}
	}
}

func TestAnSVGOpenedOnItsOwnRunsNoScript(t *testing.T) {
	r := build(t, small, site.Options{}).Find("/img/a b.svg")
	if r == nil {
		t.Fatal("not served")
	}
	for _, e := range []site.Encoded{r.Plain, r.Gzip} {
		if e.Body.Size() == 0 {
			continue
		}
		policy := header(e, "Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "sandbox") || strings.Contains(policy, "allow-scripts") || strings.Contains(policy, "script-src") {
			t.Errorf("policy %s", policy)
		}
		if got := header(e, "Content-Type"); got != "image/svg+xml" {
			t.Errorf("the media type is %s, but pages show the file as an image", got)
		}
	}
}

func TestNoFileOfAnAuthorsIsAScriptAStyleOrAPageToABrowser(t *testing.T) {
	s := build(t, small, site.Options{})
	for path, want := range map[string]string{
		"/files/app.js": "text/plain; charset=utf-8", "/files/app.css": "text/plain; charset=utf-8",
		"/files/page.html": "text/plain; charset=utf-8", "/files/page.xhtml": "text/plain; charset=utf-8",
		"/files/data.xml": "text/plain; charset=utf-8", "/files/unknown.exe": "application/octet-stream",
		"/files/values.yaml": "text/plain; charset=utf-8", "/img/photo.png": "image/png", "/files/doc.pdf": "application/pdf",
	} {
		e := s.Find(path).Plain
		if got := header(e, "Content-Type"); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
		if header(e, "X-Content-Type-Options") != "nosniff" {
			t.Errorf("a browser may guess another media type for %s", path)
		}
		if path != "/files/doc.pdf" && !strings.Contains(header(e, "Content-Security-Policy"), "sandbox") {
			t.Errorf("%s has no sandbox", path)
		}
	}
	for _, path := range []string{"/files/page.html", "/files/page.xhtml", "/files/unknown.exe"} {
		if got := header(s.Find(path).Plain, "Content-Disposition"); got != "attachment" {
			t.Errorf("%s: disposition %q, want a download", path, got)
		}
	}
	if s.Find("/img/photo.png").Gzip.Body.Size() != 0 {
		t.Error("an image is compressed twice")
	}
}

func TestTheSitesOwnScriptsMakeNoHTMLOfStrings(t *testing.T) {
	for _, name := range []string{"theme/site.js", "theme/first.js"} {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if sink := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|setAttribute\('on|javascript:`).Find(source); sink != nil {
			t.Errorf("%s has %s", name, sink)
		}
	}
}
