package book

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// These constants limit the cost of a page. For some elements, the time and memory that
// goldmark needs grow with the square of their number. Real pages contain few such
// elements, but without the limits a malicious page of 1 MB takes minutes. Beyond a limit,
// Markdown's characters are kept as text, so nothing is lost.
const (
	// mostDepth limits the nesting depth of quotes and lists; a list and its item count
	// as two levels.
	mostDepth = 100
	// mostBrackets limits how many of the characters [ ] ! are interpreted in one paragraph, item,
	// cell or heading. mostDelimiters limits the characters * _ ~ in the same way.
	mostBrackets   = 1000
	mostDelimiters = 2000
	// mostDefinitions limits the lines of a paragraph that are searched for reference
	// definitions.
	mostDefinitions = 2000
	// mostFootnotes limits the number of footnotes on a page.
	mostFootnotes = 1000
	// mostFilled limits the number of cells that are added to a table whose rows are
	// shorter than its head.
	mostFilled = 100_000
	// mostExpanded is the number of bytes by which the addresses and titles of all
	// references together may exceed the size of the page.
	mostExpanded = 100_000
)

// These are the keys of the counters in goldmark's context for one page.
var (
	bracketsKey   = parser.NewContextKey()
	delimitersKey = parser.NewContextKey()
	strikesKey    = parser.NewContextKey()
	footnotesKey  = parser.NewContextKey()
	notesKey      = parser.NewContextKey()
)

// limitedBlock limits the nesting of a container block.
type limitedBlock struct{ parser.BlockParser }

func (l limitedBlock) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if len(pc.OpenedBlocks()) >= mostDepth {
		return nil, parser.NoChildren
	}
	return l.BlockParser.Open(parent, reader, pc)
}

// limitedFootnotes limits the number of footnotes on a page.
type limitedFootnotes struct{ limitedBlock }

func (l limitedFootnotes) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	opened := counter(pc, notesKey)
	if *opened >= mostFootnotes {
		return nil, parser.NoChildren
	}
	n, state := l.limitedBlock.Open(parent, reader, pc)
	if n != nil {
		*opened++
	}
	return n, state
}

// limitedInline limits how often its inline parser is called in each block.
type limitedInline struct {
	parser.InlineParser
	seen parser.ContextKey
	most int
}

func (l limitedInline) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	seen := counter(pc, l.seen)
	if *seen >= l.most {
		return nil
	}
	*seen++
	return l.InlineParser.Parse(parent, block, pc)
}

func (l limitedInline) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	*counter(pc, l.seen) = 0
	if closer, ok := l.InlineParser.(parser.CloseBlocker); ok {
		closer.CloseBlock(parent, block, pc)
	}
}

func counter(pc parser.Context, key parser.ContextKey) *int {
	return pc.ComputeIfAbsent(key, func() any { return new(int) }).(*int)
}

// limitedParagraphs keeps paragraphs as text if they would be too expensive as tables or
// definitions. This transformer runs before the transformers that create tables and definitions.
type limitedParagraphs struct{}

func (limitedParagraphs) Transform(p *ast.Paragraph, reader text.Reader, _ parser.Context) {
	lines, source := p.Lines(), reader.Source()
	if lines.Len() < 2 || !tooManyDefinitions(lines, source) && !tooManyCells(lines, source) {
		return
	}
	plain := ast.NewTextBlock()
	plain.SetLines(lines)
	p.Parent().ReplaceChild(p.Parent(), p, plain)
}

func tooManyDefinitions(lines *text.Segments, source []byte) bool {
	first := lines.At(0)
	return lines.Len() > mostDefinitions && bytes.HasPrefix(bytes.TrimLeft(first.Value(source), " "), []byte("["))
}

func tooManyCells(lines *text.Segments, source []byte) bool {
	columns, size := 0, 0
	for i := range lines.Len() {
		line := lines.At(i)
		value := line.Value(source)
		size += len(value)
		if n := bytes.Count(value, []byte("|")); n > columns && len(bytes.Trim(value, "|-: \t\r\n")) == 0 {
			columns = n
		}
	}
	return columns*lines.Len() > size+mostFilled
}

// limitedReferences removes the addresses of references that would make a page far
// longer than its source.
type limitedReferences struct{}

func (limitedReferences) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	left := len(reader.Source()) + mostExpanded
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			if n.Reference != nil && spend(&left, n.Destination, n.Title) {
				n.Destination, n.Title = nil, nil
			}
		case *ast.Image:
			if n.Reference != nil && spend(&left, n.Destination, n.Title) {
				n.Destination, n.Title = nil, nil
			}
		}
		return ast.WalkContinue, nil
	})
}

// spend deducts the length of a reference's address and title from *left, and reports whether *left
// was too small.
func spend(left *int, destination, title []byte) bool {
	*left -= len(destination) + len(title)
	return *left < 0
}
