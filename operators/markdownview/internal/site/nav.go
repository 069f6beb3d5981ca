package site

import (
	"html"
	"slices"
	"strconv"
	"strings"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
)

const (
	// mostUnfolded is the maximum number of lines in a navigation that is shown unfolded.
	mostUnfolded = 60
	// pieceSize is the minimum size of the pieces of a navigation. worthPieces is the
	// minimum size of a navigation that is cut into shared pieces.
	pieceSize   = 3 << 10
	worthPieces = 16 << 10
)

// navigation is the list at the side of all pages. The navigation is generated once; each page
// inserts its own marks.
type navigation struct {
	base string
	text []byte
	// marks holds the marks of each page, keyed by the path of the page.
	marks map[string][]mark
	// trail holds the ancestors of each page.
	trail map[string][]book.Entry
	// titles holds the titles of the pages in the navigation.
	titles map[string]string
	// pieces holds the text, cut between entries; nil if the text is short.
	pieces []*piece

	unfolded bool
}

// mark is text to insert at an offset.
type mark struct {
	at   int
	text string
}

func newNavigation(b *book.Book, base string, c *composer) *navigation {
	n := &navigation{base: base, marks: map[string][]mark{}, trail: map[string][]book.Entry{}, titles: map[string]string{}}
	n.unfolded = lines(b.Nav) <= mostUnfolded
	var out strings.Builder
	var cuts []int
	n.entries(&out, &cuts, b.Nav, nil, nil)
	n.text = []byte(out.String())
	if len(n.text) < worthPieces {
		return n
	}
	var at []int
	from := 0
	for _, cut := range append(cuts, len(n.text)) {
		if cut-from >= pieceSize || cut == len(n.text) {
			at, from = append(at, cut), cut
		}
	}
	n.pieces = c.share(n.text, at)
	return n
}

func lines(entries []book.Entry) int {
	sum := len(entries)
	for _, e := range entries {
		sum += lines(e.Children)
	}
	return sum
}

// entries writes a list. open holds the marks that unfold the ancestors of the list.
func (n *navigation) entries(out *strings.Builder, cuts *[]int, entries, above []book.Entry, open []mark) {
	out.WriteString("<ul>")
	for _, e := range entries {
		switch {
		case e.Separator:
			out.WriteString(`<li class="mdv-rule"><hr></li>`)
		case e.Part:
			out.WriteString(`<li class="mdv-part">` + html.EscapeString(e.Title) + "</li>")
		default:
			n.entry(out, cuts, e, above, open)
		}
		*cuts = append(*cuts, out.Len())
	}
	out.WriteString("</ul>")
}

func (n *navigation) entry(out *strings.Builder, cuts *[]int, e book.Entry, above []book.Entry, open []mark) {
	out.WriteString("<li>")
	label := html.EscapeString(e.Title)
	if len(e.Number) > 0 {
		label = `<span class="mdv-number">` + number(e.Number) + "</span> " + label
	}
	current := mark{at: -1}
	if e.Path != "" {
		out.WriteString(`<a href="` + html.EscapeString(address(n.base, book.URL(e.Path))) + `"`)
		current = mark{out.Len(), ` aria-current="page"`}
		out.WriteString(">" + label + "</a>")
	} else if len(e.Children) > 0 {
		out.WriteString(`<span class="mdv-group">` + label + "</span>")
	} else {
		out.WriteString(`<span class="mdv-draft" title="Not written yet">` + label + "</span>")
	}
	if len(e.Children) > 0 {
		out.WriteString("<details")
		if n.unfolded {
			out.WriteString(" open")
		} else {
			open = append(slices.Clip(open), mark{out.Len(), " open"})
		}
		out.WriteString(`><summary aria-label="Pages of ` + html.EscapeString(e.Title) + `"></summary>`)
		n.entries(out, cuts, e.Children, append(slices.Clip(above), e), open)
		out.WriteString("</details>")
	}
	if current.at >= 0 {
		n.trail[e.Path], n.titles[e.Path] = above, e.Title
		n.marks[e.Path] = append([]mark{current}, open...)
		slices.SortFunc(n.marks[e.Path], func(a, b mark) int { return a.at - b.at })
	}
	out.WriteString("</li>")
}

// parts returns the navigation as it appears on the page at this path.
func (n *navigation) parts(path string) []part {
	marks := n.marks[path]
	if n.pieces == nil {
		return []part{{own: marked(n.text, 0, marks)}}
	}
	parts := make([]part, 0, len(n.pieces))
	from := 0
	for _, p := range n.pieces {
		to := from + len(p.plain)
		here := 0
		for here < len(marks) && marks[here].at < to {
			here++
		}
		if here == 0 {
			parts = append(parts, part{shared: p})
		} else {
			parts = append(parts, part{own: marked(p.plain, from, marks[:here])})
		}
		marks, from = marks[here:], to
	}
	return parts
}

// marked inserts marks into a part of the text that starts at an offset.
func marked(text []byte, offset int, marks []mark) []byte {
	var out []byte
	from := 0
	for _, m := range marks {
		out = append(out, text[from:m.at-offset]...)
		out = append(out, m.text...)
		from = m.at - offset
	}
	return append(out, text[from:]...)
}

func number(n []int) string {
	var out strings.Builder
	for _, i := range n {
		out.WriteString(strconv.Itoa(i))
		out.WriteByte('.')
	}
	return out.String()
}
