package report

import (
	"bufio"
	"io"
	"strings"
	"unicode"
)

// colour is a way of showing text; without colours all are the same.
type colour string

const (
	none   colour = ""
	bold   colour = "1"
	dim    colour = "2"
	red    colour = "1;31"
	green  colour = "1;32"
	yellow colour = "1;33"
	cyan   colour = "36"
)

func (g gravity) colour() colour {
	return map[gravity]colour{grave: red, middle: yellow, slight: cyan}[g]
}

// sheet is a page of text that is filled from the top.
type sheet struct {
	w      *bufio.Writer
	width  int
	colour bool
}

const (
	usualWidth = 80
	leastWidth = 40
	mostWidth  = 120 // longer lines are hard to read
)

func newSheet(w io.Writer, width int, colour bool) *sheet {
	if width <= 0 {
		width = usualWidth
	}
	return &sheet{w: bufio.NewWriter(w), width: min(max(width, leastWidth), mostWidth), colour: colour}
}

// line writes one line as it is; callers have made it fit, or it is a command.
func (s *sheet) line(c colour, text string) {
	// An error of the writer comes back from Flush.
	_, _ = s.w.WriteString(s.paint(c, strings.TrimRight(unheard(text), " ")) + "\n")
}

func (s *sheet) gap() { s.line(none, "") }

func (s *sheet) heading(text string) {
	s.gap()
	s.line(bold, text)
}

func (s *sheet) paint(c colour, text string) string {
	if !s.colour || c == none || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// para writes text of one or more lines behind a first prefix, and continues it
// below the place where it began.
func (s *sheet) para(c colour, first, text string) {
	prefix := first
	for part := range strings.SplitSeq(text, "\n") {
		for _, piece := range wrap(expand(part), s.width-width(prefix)) {
			s.line(c, prefix+piece)
			prefix = strings.Repeat(" ", width(first))
		}
	}
}

// pair writes what on the left and aside on the right of one line, or on two
// lines if they do not fit.
func (s *sheet) pair(c colour, first, what string, asideColour colour, aside string) {
	space := s.width - width(first+what) - width(aside)
	switch {
	case aside == "":
		s.para(c, first, what)
	case space < 2:
		s.para(c, first, what)
		s.para(asideColour, strings.Repeat(" ", width(first)), aside)
	default:
		text := s.paint(c, unheard(first+what)) + strings.Repeat(" ", space) + s.paint(asideColour, unheard(aside))
		s.line(none, text)
	}
}

// command writes a command in one line, however long, so that it can be copied.
func (s *sheet) command(c colour, first, text string) { s.line(c, first+inline(text)) }

// expand puts spaces in the place of tabs.
func expand(line string) string { return strings.ReplaceAll(line, "\t", "    ") }

// wrap breaks a line at spaces so that no piece is wider than most, and words
// that are wider still wherever they have to be. The indentation is kept.
func wrap(line string, most int) []string {
	most = max(most, 8)
	if width(line) <= most {
		return []string{line} // with the columns that somebody may have made
	}
	text := strings.TrimLeft(line, " ")
	indent := strings.Repeat(" ", min(len(line)-len(text), most/2))
	var pieces []string
	piece := indent
	for word := range strings.FieldsSeq(text) {
		for {
			joined := piece + word
			if piece != indent {
				joined = piece + " " + word
			}
			if width(joined) <= most {
				piece = joined
				break
			}
			if piece != indent {
				pieces, piece = append(pieces, piece), indent
				continue
			}
			head, rest := cut(word, most-len(indent))
			pieces, word = append(pieces, indent+head), rest
		}
	}
	return append(pieces, piece)
}

// cut takes as much from the front of a word as is at most as wide; at least one
// letter.
func cut(word string, most int) (head, rest string) {
	wide := 0
	for i, r := range word {
		wide += runeWidth(r)
		if wide > most && i > 0 {
			return word[:i], word[i:]
		}
	}
	return word, ""
}

// short ends text that is wider than most in three dots.
func short(text string, most int) string {
	if width(text) <= most {
		return text
	}
	head, _ := cut(text, max(most-3, 1))
	return head + "..."
}

// width is how many columns a terminal needs for a line.
func width(line string) int {
	n := 0
	for _, r := range line {
		n += runeWidth(r)
	}
	return n
}

// wide are the letters that take two columns: the blocks of East Asian scripts
// and of pictures, from Unicode's EastAsianWidth.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115F, Stride: 1}, {Lo: 0x2E80, Hi: 0xA4CF, Stride: 1},
		{Lo: 0xAC00, Hi: 0xD7A3, Stride: 1}, {Lo: 0xF900, Hi: 0xFAFF, Stride: 1},
		{Lo: 0xFE30, Hi: 0xFE6F, Stride: 1}, {Lo: 0xFF00, Hi: 0xFF60, Stride: 1},
		{Lo: 0xFFE0, Hi: 0xFFE6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1F300, Hi: 0x1FAFF, Stride: 1}, {Lo: 0x20000, Hi: 0x3FFFD, Stride: 1},
	},
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}
