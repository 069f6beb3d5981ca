package book

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// A summaryPart is a part of SUMMARY.md. The parts have this order:
//
//	[title] → prefix → numbered → suffix
//
// A list or a heading of level 1 ends the prefix chapters. A paragraph ends the numbered
// chapters, unless it follows a part title.
type summaryPart int

const (
	titlePart summaryPart = iota
	prefixPart
	numberedPart
	suffixPart
)

type summaryReader struct {
	*reader
	source []byte
	lines  lines
	part   summaryPart
	// titled reports whether the last block was a part title.
	titled   bool
	chapters int            // number of numbered chapters at the top level
	line     map[string]int // line of each page's entry, keyed by the page's path
}

// summary reads SUMMARY.md into the navigation.
func (r *reader) summary(source []byte) {
	s := &summaryReader{reader: r, source: source, lines: newLines(source), line: map[string]int{}}
	doc := summaryParser.Parse(text.NewReader(source))
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		s.block(n)
	}
	if len(s.line) == 0 && len(r.book.Problems) == 0 {
		r.warn(SummaryPath, 0, "no entry leads to a page")
	}
}

// summaryParser reads plain CommonMark, because mdBook reads SUMMARY.md as plain
// CommonMark.
var summaryParser = commonMark()

func (s *summaryReader) block(n ast.Node) {
	heading, isHeading := n.(*ast.Heading)
	isTop := isHeading && heading.Level == 1
	switch n.Kind() {
	case ast.KindHTMLBlock, ast.KindLinkReferenceDefinition:
		return // comments and link definitions are allowed anywhere
	}
	if s.part == titlePart {
		s.part = prefixPart
		if isTop {
			s.summaryTitle = plain(n, s.source)
			return
		}
	}
	isList := n.Kind() == ast.KindList
	if s.part == prefixPart && (isList || isTop) {
		s.part = numberedPart
	}
	if s.part == numberedPart && n.Kind() == ast.KindParagraph && !s.titled {
		s.part = suffixPart
	}
	switch {
	case s.part != numberedPart:
		s.affix(n, isList || isTop)
	case isTop:
		s.add(Entry{Title: plain(n, s.source), Part: true, Line: s.lines.of(n)})
	case isList:
		entries := s.list(n, nil, s.chapters)
		s.chapters += len(entries)
		s.book.Nav = append(s.book.Nav, entries...)
	case n.Kind() == ast.KindThematicBreak:
		s.add(Entry{Separator: true, Line: s.lines.of(n)})
	case n.Kind() == ast.KindParagraph:
		s.ignored(n)
	}
	s.titled = isTop
}

func (s *summaryReader) add(e Entry) { s.book.Nav = append(s.book.Nav, e) }

func (s *summaryReader) ignored(n ast.Node) {
	s.warn(SummaryPath, s.lines.of(n), "this text is not a link and is ignored")
}

// affix adds the links and separators outside the numbered chapters.
func (s *summaryReader) affix(n ast.Node, refused bool) {
	if refused {
		s.fatal(SummaryPath, s.lines.of(n), "a list or a part title cannot follow suffix chapters; move these chapters into the list, or below the list")
		return
	}
	if n.Kind() == ast.KindThematicBreak {
		s.add(Entry{Separator: true, Line: s.lines.of(n)})
		return
	}
	found := false
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, isLink := n.(*ast.Link)
		if !isLink || !entering {
			return ast.WalkContinue, nil
		}
		found = true
		s.add(s.entry(link))
		return ast.WalkSkipChildren, nil
	})
	if !found && n.Kind() == ast.KindParagraph {
		s.ignored(n)
	}
}

// list reads the chapters of one list. The number of the first chapter is from+1.
func (s *summaryReader) list(list ast.Node, parent []int, from int) []Entry {
	var entries []Entry
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		if e, ok := s.item(item, append(slices.Clone(parent), from+len(entries)+1)); ok {
			entries = append(entries, e)
		}
	}
	return entries
}

func (s *summaryReader) item(item ast.Node, number []int) (Entry, bool) {
	var link *ast.Link
	if first := item.FirstChild(); first != nil {
		switch first.Kind() {
		case ast.KindTextBlock, ast.KindParagraph:
			link, _ = first.FirstChild().(*ast.Link)
		}
	}
	if link == nil {
		s.fatal(SummaryPath, s.lines.of(item), "a list item must begin with a link: - [Title](page.md), or - [Title]() for a page that is not written yet")
		return Entry{}, false
	}
	e := s.entry(link)
	e.Number = number
	for n := item.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindList {
			e.Children = append(e.Children, s.list(n, number, len(e.Children))...)
		}
	}
	return e, true
}

// entry makes an entry from a link, and reports problems with its target.
func (s *summaryReader) entry(link *ast.Link) Entry {
	e := Entry{Title: plain(link, s.source), Line: s.lines.of(link)}
	to := Destination(link.Destination)
	if to == "" {
		return e // a draft
	}
	shown := quoted(to)
	fatal := func(format string, args ...any) { s.fatal(SummaryPath, e.Line, fmt.Sprintf(format, args...)) }
	if len(to) > longest {
		fatal("links to %s, which is longer than %d bytes", shown, longest)
		return e
	}
	target, fragment, local := Resolve(SummaryPath, to)
	_, isPage := s.book.paths.page[target]
	switch {
	case !local:
		fatal("links to %s, which is not a page of this site; an entry must lead to one of its Markdown files", shown)
	case outside(target):
		fatal("links to %s, which is outside the site", shown)
	case fragment != "" || target == SummaryPath && to[0] == '#':
		fatal("links to %s; an entry must lead to a complete page, without #", shown)
	case isPage && s.line[target] != 0:
		fatal("links to %s, as line %d does; a page can have only one entry", quoted(target), s.line[target])
	case isPage:
		s.line[target] = e.Line
		e.Path = target
		s.spelling(to, target, e.Line)
	case s.book.paths.asset[target] || target == SummaryPath || target == "" || s.book.paths.dir[target] || target[len(target)-1] == '/':
		fatal("links to %s, which is not a Markdown file", shown)
	default:
		s.book.Problems = append(s.book.Problems, Problem{
			Path: SummaryPath, Line: e.Line, Fatal: true, Missing: target,
			Message: fmt.Sprintf("links to %s, which does not exist", quoted(target)),
		})
	}
	return e
}

// spelling reports links for which mdBook would look for a different file, because mdBook
// decodes only %20.
func (s *summaryReader) spelling(to, target string, line int) {
	if path.Clean(strings.ReplaceAll(to, "%20", " ")) == target {
		return
	}
	s.book.Problems = append(s.book.Problems, Problem{
		Path: SummaryPath, Line: line, MdBook: true,
		Message: fmt.Sprintf("links to %s, which mdBook does not find; write %s", quoted(to), quoted(target)),
	})
}
