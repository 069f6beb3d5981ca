package book

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// What a page may cost. goldmark's time and memory grow with the square of some
// things that no person writes many of: without these limits a page of 1 MB that
// is made for it takes minutes. Beyond a limit the characters stand as text, so
// that nothing is lost.
const (
	// mostDepth is how deep quotes and lists nest; a list and its item are two.
	mostDepth = 100
	// mostBrackets and mostDelimiters are how many [ ] ! and * _ ~ may mean
	// something in one paragraph, item, cell or heading.
	mostBrackets   = 1000
	mostDelimiters = 2000
	// mostDefinitions is the number of lines of a paragraph that is searched for
	// definitions of references.
	mostDefinitions = 2000
	// mostFootnotes is the number of footnotes of a page.
	mostFootnotes = 1000
	// mostFilled is the number of cells a table is filled up with at most where
	// its rows are shorter than its head.
	mostFilled = 100_000
	// mostExpanded is the number of bytes that references add to a page at most,
	// on top of as many as it has.
	mostExpanded = 100_000
)

// The keys of the counters in goldmark's context of one page.
var (
	bracketsKey   = parser.NewContextKey()
	delimitersKey = parser.NewContextKey()
	strikesKey    = parser.NewContextKey()
	footnotesKey  = parser.NewContextKey()
	notesKey      = parser.NewContextKey()
)

// limitedBlock is one of the blocks that hold blocks.
type limitedBlock struct{ parser.BlockParser }

func (l limitedBlock) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if len(pc.OpenedBlocks()) >= mostDepth {
		return nil, parser.NoChildren
	}
	return l.BlockParser.Open(parent, reader, pc)
}

// limitedFootnotes opens so many footnotes on a page.
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

// limitedInline looks at so many of its characters in each block.
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

// limitedParagraphs leaves paragraphs as text that would be too dear as tables
// or as definitions. It stands before the transformers that make those.
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

// limitedReferences takes the addresses away from references that would make a
// page very much longer than it was written.
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

// spend says whether this is more than is left.
func spend(left *int, destination, title []byte) bool {
	*left -= len(destination) + len(title)
	return *left < 0
}
