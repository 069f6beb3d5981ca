package book

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Markdown returns the parser for pages, which are written in GitHub's Markdown with
// footnotes. Heading ids are given explicitly ({#id}) or derived from the text of the
// heading. Renderers add options to this parser, so that they have the same limits on cost
// as Read, and the same heading ids. Read checks links against the heading ids.
func Markdown(options ...goldmark.Option) goldmark.Markdown {
	return goldmark.New(append([]goldmark.Option{
		goldmark.WithParser(commonMark()),
		goldmark.WithExtensions(github{}),
	}, options...)...)
}

// commonMark returns goldmark's parser, with limits on the cost of a page.
func commonMark() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(limitedBlock{parser.NewListParser()}, 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(limitedBlock{parser.NewBlockquoteParser()}, 800),
			util.Prioritized(parser.NewHTMLBlockParser(), 900),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(limitedInline{parser.NewLinkParser(), bracketsKey, mostBrackets}, 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewRawHTMLParser(), 400),
			util.Prioritized(limitedInline{parser.NewEmphasisParser(), delimitersKey, mostDelimiters}, 500),
		),
		parser.WithParagraphTransformers(
			util.Prioritized(limitedParagraphs{}, 50),
			util.Prioritized(parser.LinkReferenceParagraphTransformer, 100),
		),
		parser.WithASTTransformers(util.Prioritized(limitedReferences{}, 50)),
	)
}

// github enables GitHub's extensions and footnotes.
type github struct{}

func (github) Extend(m goldmark.Markdown) {
	extension.Linkify.Extend(m)
	extension.TaskList.Extend(m)
	extension.Table.Extend(m)
	m.Parser().AddOptions(
		parser.WithHeadingAttribute(),
		parser.WithBlockParsers(
			util.Prioritized(limitedFootnotes{limitedBlock{extension.NewFootnoteBlockParser()}}, 999),
		),
		parser.WithInlineParsers(
			util.Prioritized(limitedInline{extension.NewFootnoteParser(), footnotesKey, mostBrackets}, 101),
			util.Prioritized(limitedInline{extension.NewStrikethroughParser(), strikesKey, mostDelimiters}, 500),
		),
		parser.WithASTTransformers(
			util.Prioritized(headingIDs{}, 100),
			util.Prioritized(extension.NewFootnoteASTTransformer(), 999),
		),
	)
	m.Renderer().AddOptions(renderer.WithNodeRenderers(
		util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
		util.Prioritized(extension.NewFootnoteHTMLRenderer(), 500),
	))
}

// headingIDs assigns the ids of headings once their text is known. goldmark itself derives
// ids from the source, so code and link addresses in a heading would become part of its
// id.
type headingIDs struct{}

func (headingIDs) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	ids := NewIDs()
	var open []*ast.Heading
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		h, ok := n.(*ast.Heading)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		if id, ok := h.AttributeString("id"); ok {
			if chosen, ok := id.([]byte); ok {
				ids.Put(chosen)
				return ast.WalkSkipChildren, nil
			}
		}
		open = append(open, h)
		return ast.WalkSkipChildren, nil
	})
	// Explicit ids are reserved before other ids are derived.
	for _, h := range open {
		h.SetAttributeString("id", ids.Generate([]byte(plain(h, reader.Source())), ast.KindHeading))
	}
}

// NewIDs returns a generator of heading ids for one page. The generator follows GitHub: it converts
// to lower case, drops punctuation, replaces spaces by hyphens, and appends -1, -2 and so on to
// duplicates.
func NewIDs() parser.IDs {
	return &ids{taken: map[string]int{}}
}

type ids struct {
	// taken maps each used id to the last number that was appended to it.
	taken map[string]int
}

// Generate returns an unused id for a heading with this text.
func (s *ids) Generate(value []byte, _ ast.NodeKind) []byte {
	var id strings.Builder
	for _, c := range string(bytes.TrimSpace(value)) {
		switch {
		case unicode.In(c, unicode.Letter, unicode.Mark, unicode.Nd, unicode.Pc), c == '-':
			id.WriteRune(unicode.ToLower(c))
		case unicode.IsSpace(c):
			id.WriteByte('-')
		}
	}
	base := id.String()
	if base == "" {
		base = "section"
	}
	unique := base
	for {
		if _, taken := s.taken[unique]; !taken {
			break
		}
		s.taken[base]++
		unique = base + "-" + strconv.Itoa(s.taken[base])
	}
	s.taken[unique] = 0
	return []byte(unique)
}

// Put reserves an id.
func (s *ids) Put(id []byte) {
	if _, taken := s.taken[string(id)]; !taken {
		s.taken[string(id)] = 0
	}
}

// plain returns the text of a node without its markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			if n.Parent().Kind() == ast.KindCodeSpan {
				b.Write(n.Value(source))
			} else {
				b.Write(unescape(n.Value(source)))
			}
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(source))
		case *ast.RawHTML:
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

// unescape resolves backslashes and entities.
func unescape(v []byte) []byte {
	if bytes.IndexByte(v, '\\') < 0 && bytes.IndexByte(v, '&') < 0 {
		return v
	}
	return util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(v)))
}

// Destination returns a link's address in the form that browsers receive.
func Destination(raw []byte) string {
	return string(unescape(raw))
}
