package render

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
)

// tree converts the output of goldmark, including the author's own HTML, into a page of this site,
// and collects the text of the page.
type tree struct {
	renderer *Renderer
	book     *book.Book
	path     string

	found []*section
}

func (t *tree) children(parent *html.Node) {
	for n := parent.FirstChild; n != nil; {
		// A visit may move or replace n, so the next node is determined first.
		next := n.NextSibling
		t.visit(n)
		n = next
	}
}

func (t *tree) visit(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		t.text(n.Data)
		return
	case html.ElementNode:
	default:
		n.Parent.RemoveChild(n)
		return
	}
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Iframe, atom.Object, atom.Embed, atom.Noscript, atom.Textarea,
		atom.Title, atom.Select, atom.Svg, atom.Math, atom.Audio, atom.Video, atom.Canvas, atom.Base, atom.Link, atom.Meta:
		// The policy will remove these elements with their text. The tree removes them as
		// well, so that the search does not find text that readers cannot see.
		n.Parent.RemoveChild(n)
		return
	case atom.A:
		t.link(n)
	case atom.Img:
		t.image(n)
	case atom.Table:
		wrap(n, element(atom.Div, "class", "table", "role", "region", "tabindex", "0", "aria-label", "Table"))
	case atom.Td, atom.Th:
		if style, ok := get(n, "style"); ok {
			// goldmark uses a style to align a column, but the policy removes styles.
			set(n, "align", strings.TrimPrefix(style, "text-align:"))
		}
	case atom.Blockquote:
		admonition(n)
	case atom.Pre:
		set(n, "tabindex", "0")
		highlight(n)
	case atom.Input:
		if n.Parent.DataAtom == atom.Li {
			set(n.Parent, "class", "task")
		}
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		t.heading(n)
		return
	}
	t.children(n)
	if isBlock(n.DataAtom) {
		t.text(" ")
	}
}

// heading starts a section, and adds a link to the heading itself.
func (t *tree) heading(n *html.Node) {
	id, _ := get(n, "id")
	s := &section{id: id, open: true}
	t.found = append(t.found, s)
	t.children(n)
	s.open = false
	if id == "" {
		return
	}
	a := element(atom.A, "class", "anchor", "href", "#"+url.PathEscape(id), "aria-label", "Link to "+squeeze(s.heading.String()))
	a.AppendChild(&html.Node{Type: html.TextNode, Data: "#"})
	n.AppendChild(a)
}

// link rewrites a link between files as a link between pages.
func (t *tree) link(n *html.Node) {
	href, ok := get(n, "href")
	if !ok {
		return
	}
	if to, local := t.address(href); local {
		set(n, "href", to)
	}
}

// image shows images of this site, and replaces other images with links, so that a reader's
// browser does not reveal to third parties which page is being read.
func (t *tree) image(n *html.Node) {
	src, _ := get(n, "src")
	alt, _ := get(n, "alt")
	set(n, "loading", "lazy")
	t.text(alt)
	if strings.HasPrefix(strings.ToLower(strings.TrimSpace(src)), "data:") {
		return
	}
	if to, local := t.address(src); local {
		set(n, "src", to)
		return
	}
	if alt == "" {
		alt = src
	}
	label := &html.Node{Type: html.TextNode, Data: alt}
	var shown *html.Node
	if inside(n, atom.A) {
		shown = element(atom.Span, "class", "external-image")
	} else {
		shown = element(atom.A, "class", "external-image", "href", src)
	}
	shown.AppendChild(label)
	n.Parent.InsertBefore(shown, n)
	n.Parent.RemoveChild(n)
}

// address returns the address in the site for a link between files.
func (t *tree) address(link string) (to string, local bool) {
	target, fragment, local := book.Resolve(t.path, link)
	if !local {
		return "", false
	}
	if strings.HasPrefix(strings.TrimSpace(link), "#") {
		return (&url.URL{Fragment: fragment}).String(), true
	}
	u := url.URL{Fragment: fragment}
	if file, ok := t.book.Find(target); ok {
		u.Path = t.renderer.base + book.URL(file)
	} else {
		// The link leads outside the site or is dead, so its target stays as written.
		u.Path = path.Join(t.renderer.base, target)
		if strings.HasSuffix(target, "/") && !strings.HasSuffix(u.Path, "/") {
			u.Path += "/"
		}
	}
	return u.String(), true
}

var admonitionMark = regexp.MustCompile(`^\s*\[!(?i:(NOTE|TIP|IMPORTANT|WARNING|CAUTION))\][ \t]*(\n|$)`)

// admonition makes a box from a quotation that begins with a mark such as [!NOTE].
func admonition(n *html.Node) {
	p := n.FirstChild
	for p != nil && p.Type == html.TextNode && strings.TrimSpace(p.Data) == "" {
		p = p.NextSibling
	}
	if p == nil || p.DataAtom != atom.P || p.FirstChild == nil || p.FirstChild.Type != html.TextNode {
		return
	}
	text := p.FirstChild
	match := admonitionMark.FindStringSubmatch(text.Data)
	if match == nil {
		return
	}
	text.Data = text.Data[len(match[0]):]
	if br := text.NextSibling; text.Data == "" && br != nil && br.DataAtom == atom.Br {
		p.RemoveChild(br) // the line with the mark ended in a hard break
	}
	if text.Data == "" && text.NextSibling == nil {
		n.RemoveChild(p)
	}
	kind := strings.ToLower(match[1])
	n.Data, n.DataAtom, n.Attr = "div", atom.Div, nil
	set(n, "class", "admonition admonition-"+kind)
	set(n, "role", "note")
	title := element(atom.P, "class", "admonition-title")
	title.AppendChild(&html.Node{Type: html.TextNode, Data: strings.ToUpper(kind[:1]) + kind[1:]})
	n.InsertBefore(title, n.FirstChild)
}

func element(name atom.Atom, attributes ...string) *html.Node {
	n := &html.Node{Type: html.ElementNode, DataAtom: name, Data: name.String()}
	for pair := range slices.Chunk(attributes, 2) {
		n.Attr = append(n.Attr, html.Attribute{Key: pair[0], Val: pair[1]})
	}
	return n
}

func wrap(n, in *html.Node) {
	n.Parent.InsertBefore(in, n)
	n.Parent.RemoveChild(n)
	in.AppendChild(n)
}

func inside(n *html.Node, name atom.Atom) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.DataAtom == name {
			return true
		}
	}
	return false
}

func get(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

func set(n *html.Node, key, value string) {
	for i := range n.Attr {
		if n.Attr[i].Key == key {
			n.Attr[i].Val = value
			return
		}
	}
	n.Attr = append(n.Attr, html.Attribute{Key: key, Val: value})
}
