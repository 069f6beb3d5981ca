package book

import (
	"bytes"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"
)

// reference is a link or an image of a page.
type reference struct {
	to    string
	line  int
	image bool
}

// page reads one page, its links and its anchors.
func (r *reader) page(p string, source []byte) Page {
	s := &scan{source: source, lines: newLines(source), anchors: map[string]bool{}, page: Page{Path: p, Source: source}}
	doc := pageParser.Parse(text.NewReader(source))
	_ = ast.Walk(doc, s.visit)
	s.page.Title = pageTitle(&s.page)
	r.refs[p], r.anchors[p] = s.refs, s.anchors
	return s.page
}

// pageParser can be shared safely, because goldmark's parsers keep their state in a
// separate context for each text.
var pageParser parser.Parser = Markdown().Parser()

func pageTitle(p *Page) string {
	title := ""
	for _, h := range p.Headings {
		if h.Text != "" && (title == "" || h.Level == 1) {
			title = h.Text
			if h.Level == 1 {
				return title
			}
		}
	}
	if title != "" {
		return title
	}
	if dir := dirOf(p.Path); isIndex(p.Path) && dir != "" {
		return nameTitle(path.Base(dir))
	}
	return nameTitle(strings.TrimSuffix(path.Base(p.Path), ".md"))
}

// scan collects the links and anchors of a page.
type scan struct {
	source  []byte
	lines   lines
	page    Page
	refs    []reference
	anchors map[string]bool
}

func (s *scan) visit(n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	switch n := n.(type) {
	case *ast.Heading:
		h := Heading{Text: plain(n, s.source), Level: n.Level, Line: s.lines.of(n)}
		if id, ok := n.AttributeString("id"); ok {
			if id, ok := id.([]byte); ok {
				h.ID = string(id)
				s.anchors[h.ID] = true
			}
		}
		s.page.Headings = append(s.page.Headings, h)
	case *ast.Link:
		s.refer(Destination(n.Destination), s.lines.of(n), false)
	case *ast.Image:
		s.refer(Destination(n.Destination), s.lines.of(n), true)
	case *ast.RawHTML:
		s.html(n.Segments.Len(), n.Segments.At)
	case *ast.HTMLBlock:
		count, at := n.Lines().Len(), n.Lines().At
		if n.HasClosure() {
			s.html(count+1, func(i int) text.Segment {
				if i == count {
					return n.ClosureLine
				}
				return at(i)
			})
			break
		}
		s.html(count, at)
	}
	return ast.WalkContinue, nil
}

func (s *scan) refer(to string, line int, image bool) {
	s.refs = append(s.refs, reference{to: to, line: line, image: image})
}

// html finds links and anchors in raw HTML. Each segment holds one line.
func (s *scan) html(count int, at func(int) text.Segment) {
	if count == 0 {
		return
	}
	var raw bytes.Buffer
	for i := range count {
		segment := at(i)
		raw.Write(segment.Value(s.source))
	}
	tokens := html.NewTokenizer(&raw)
	for line := 0; ; {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			return
		}
		start := line
		line += bytes.Count(tokens.Raw(), []byte("\n"))
		if kind == html.StartTagToken || kind == html.SelfClosingTagToken {
			s.tag(tokens, s.lines.at(at(min(start, count-1)).Start))
		}
	}
}

func (s *scan) tag(tokens *html.Tokenizer, line int) {
	name, more := tokens.TagName()
	tag := string(name)
	for more {
		var key, value []byte
		key, value, more = tokens.TagAttr()
		switch attribute := string(key); {
		case attribute == "id", attribute == "name" && tag == "a":
			s.anchors[string(value)] = true
		case attribute == "href" && tag != "base":
			s.refer(string(value), line, false)
		case attribute == "src":
			s.refer(string(value), line, tag == "img")
		}
	}
}
