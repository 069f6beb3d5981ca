// Package render renders Markdown as safe HTML.
//
//	Markdown → goldmark → tree → links, admonitions, colors … → policy → HTML
//
// Pages may contain raw HTML. The policy protects readers: as the last step, it filters the
// complete output of the previous steps, including the author's HTML. A mistake in an
// earlier step is therefore not a vulnerability. The tree closes elements that the author
// left open, so a page cannot break out of its frame.
package render

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	gmhtml "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
)

// Options locate the site.
type Options struct {
	// Base is the path below which the site is served. Base begins and ends with a slash.
	// Empty means "/".
	Base string
}

// Renderer renders pages. A Renderer is safe for concurrent use.
type Renderer struct {
	base     string
	markdown goldmark.Markdown
	policy   *bluemonday.Policy
}

// Page is a rendered page.
type Page struct {
	// HTML is the text inside the page's frame: safe HTML in which every element is closed.
	HTML []byte
	// Sections hold the text of the page for the search.
	Sections []Section
}

// Section is the text from one heading to the next.
type Section struct {
	// ID is the fragment of the heading; empty for text before the first heading.
	ID      string
	Heading string
	Text    string
}

// New makes a renderer.
func New(o Options) *Renderer {
	if o.Base == "" {
		o.Base = "/"
	}
	return &Renderer{
		base: o.Base,
		markdown: book.Markdown(
			goldmark.WithExtensions(extension.DefinitionList),
			goldmark.WithRendererOptions(gmhtml.WithUnsafe()),
		),
		policy: policy(),
	}
}

// Page renders a page of the book, and returns every failure as an error, even a panic in a
// library.
func (r *Renderer) Page(b *book.Book, p *book.Page) (out Page, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			out, err = Page{}, fmt.Errorf("rendering %s: %v", p.Path, cause)
		}
	}()
	var buf bytes.Buffer
	if err := r.markdown.Convert(p.Source, &buf); err != nil {
		return Page{}, fmt.Errorf("rendering %s: %w", p.Path, err)
	}
	body := &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
	nodes, err := html.ParseFragment(&buf, body)
	if err != nil {
		return Page{}, fmt.Errorf("rendering %s: parsing its HTML: %w", p.Path, err)
	}
	for _, n := range nodes {
		body.AppendChild(n)
	}
	t := &tree{renderer: r, book: b, path: p.Path}
	t.children(body)
	out.Sections = t.sections()

	buf.Reset()
	for n := body.FirstChild; n != nil; n = n.NextSibling {
		if err := html.Render(&buf, n); err != nil {
			return Page{}, fmt.Errorf("rendering %s: %w", p.Path, err)
		}
	}
	out.HTML = r.policy.SanitizeBytes(buf.Bytes())
	return out, nil
}

// Source returns the source of a page that could not be rendered.
func Source(p *book.Page) Page {
	text := string(p.Source)
	return Page{
		HTML:     []byte("<pre tabindex=\"0\"><code>" + html.EscapeString(text) + "</code></pre>"),
		Sections: []Section{{Text: strings.Join(strings.Fields(text), " ")}},
	}
}
