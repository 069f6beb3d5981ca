package render_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/render"
)

var update = flag.Bool("update", false, "write the golden files")

func TestARepresentativePageRendersAsItsGoldenFile(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("testdata", "page.md"))
	if err != nil {
		t.Fatal(err)
	}
	got := renderPage(t, string(source)).HTML
	golden := filepath.Join("testdata", "page.html")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the page differs from %s (-want +got; -update writes it):\n%s", golden, diff)
	}
}

func TestLinksBetweenFilesLeadToPages(t *testing.T) {
	for markdown, want := range map[string]string{
		"[x](../README.md)":                   `href="/docs/"`,
		"[x](../README.md#a-b)":               `href="/docs/#a-b"`,
		"[x](page.md)":                        `href="/docs/guide/page.html"`,
		"[x](/guide/page.md#x)":               `href="/docs/guide/page.html#x"`,
		"[x](#here)":                          `href="#here"`,
		"[x](a.png)":                          `href="/docs/guide/a.png"`,
		"![x](a.png)":                         `src="/docs/guide/a.png"`,
		`<img src="a.png">`:                   `src="/docs/guide/a.png"`,
		`<a href="../README.md">x</a>`:        `href="/docs/"`,
		"[x](missing.md)":                     `href="/docs/guide/missing.md"`,
		"[x](https://example.org/a.md)":       `href="https://example.org/a.md"`,
		"[x](mailto:a@example.org)":           `href="mailto:a@example.org"`,
		"![x](https://example.org/a.png)":     `<a class="external-image" href="https://example.org/a.png">x</a>`,
		"[![x](//e.org/a.png)](../README.md)": `<a href="/docs/"><span class="external-image">x</span></a>`,
		"![x](data:image/png;base64,AAAA)":    `src="data:image/png;base64,AAAA"`,
	} {
		if got := string(renderPage(t, markdown).HTML); !strings.Contains(got, want) {
			t.Errorf("%s became %s, want %s in it", markdown, got, want)
		}
	}
}

func TestHeadingsHaveTheIDsThatTheBookChecksLinksAgainst(t *testing.T) {
	source := "# Über *uns* & `co.de`\n\n## Same\n\n## Same\n\n## [Link](x.md)\n\n## Chosen {#my-id}\n\n## 日本語 テスト\n\n###\n\nUnder\n-----\n"
	b := book.Read([]book.File{{Path: "page.md", Data: []byte(source)}})
	var want, got []string
	for _, h := range b.Pages[0].Headings {
		want = append(want, h.ID)
	}
	tokens := html.NewTokenizer(strings.NewReader(string(renderPage(t, source).HTML)))
	for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
		token := tokens.Token()
		if kind != html.StartTagToken || len(token.Data) != 2 || token.Data[0] != 'h' {
			continue
		}
		for _, a := range token.Attr {
			if a.Key == "id" {
				got = append(got, a.Val)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids (-book +page):\n%s", diff)
	}
}

func TestSectionsHoldTheTextOfAPage(t *testing.T) {
	page := renderPage(t, "before\n\n# One *two*\n\nthree `four`\n\n- five\n- six\n\n## Seven\n\n```go\nfunc eight() {}\n```\n\n| a | b |\n|---|---|\n| nine | ten |\n")
	want := []render.Section{
		{Text: "before"},
		{ID: "one-two", Heading: "One two", Text: "three four five six"},
		{ID: "seven", Heading: "Seven", Text: "func eight() {} a b nine ten"},
	}
	if diff := cmp.Diff(want, page.Sections); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
}

func TestCodeIsColouredAndKept(t *testing.T) {
	source := "func main() {\n\tprintln(\"<b>&amp;\") // x\n}\n"
	out := string(renderPage(t, "```go\n"+source+"```").HTML)
	if !strings.Contains(out, `<span class="kd">func</span>`) {
		t.Errorf("no colour in %s", out)
	}
	var text strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(out))
	for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
		if kind == html.TextToken {
			text.WriteString(tokens.Token().Data)
		}
	}
	if diff := cmp.Diff(strings.TrimSpace(source), strings.TrimSpace(text.String())); diff != "" {
		t.Errorf("the code changed (-want +got):\n%s", diff)
	}
	for _, name := range []string{"nosuchlanguage", "rust,ignore", "js {1,3}", "{}", ",", "*", "mermaid"} {
		if out := string(renderPage(t, "```"+name+"\nsome text\n```").HTML); !strings.Contains(out, "some") {
			t.Errorf("```%s lost its code: %s", name, out)
		}
	}
}

func TestHTMLNestedTooDeepIsAnErrorAndNoCrash(t *testing.T) {
	b := book.Read([]book.File{{Path: "page.md", Data: []byte(strings.Repeat("<div>", 3000) + "x")}})
	out, err := render.New(render.Options{}).Page(b, &b.Pages[0])
	if err == nil {
		t.Skip("the parser now accepts this depth") // so no error can be tested
	}
	if len(out.HTML) != 0 {
		t.Error("the error came with a part of the page")
	}
	if source := render.Source(&b.Pages[0]); harm(source.HTML) != "" || !strings.Contains(string(source.HTML), "&lt;div&gt;") {
		t.Errorf("the source is not shown as text")
	}
}
