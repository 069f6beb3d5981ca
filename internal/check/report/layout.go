package report

import (
	"bufio"
	"io"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/textwidth"
)

// colour is a style of text on a terminal.
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

// sheet writes lines of text to a terminal or a file.
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

// line writes one line without wrapping it, because it fits or is a command.
func (s *sheet) line(c colour, text string) {
	// Flush will return any error of the writer.
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

// para writes text after a prefix, on one or more lines. The lines after the first are
// indented to the width of the prefix.
func (s *sheet) para(c colour, first, text string) {
	prefix := first
	for part := range strings.SplitSeq(text, "\n") {
		for _, piece := range textwidth.Wrap(expand(part), s.width-width(prefix)) {
			s.line(c, prefix+piece)
			prefix = strings.Repeat(" ", width(first))
		}
	}
}

// pair writes one text (first and what) at the left of a line, and another text (aside) at the
// right. If they do not fit, it uses two lines.
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

// command writes a command on one line of any length, so that it can be copied.
func (s *sheet) command(c colour, first, text string) { s.line(c, first+inline(text)) }

// expand replaces tabs with spaces.
func expand(line string) string { return strings.ReplaceAll(line, "\t", "    ") }

// short truncates text that is wider than most, and ends it with three dots.
func short(text string, most int) string { return textwidth.Short(text, most, "...") }

func width(line string) int { return textwidth.Width(line) }
