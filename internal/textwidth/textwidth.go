// Package textwidth measures text in the columns of a terminal, and wraps and cuts it.
package textwidth

import (
	"strings"
	"unicode"
	"unicode/utf8"

	eastasian "golang.org/x/text/width"
)

// leastWrap is the smallest width at which Wrap breaks lines.
const leastWrap = 8

// Width returns the number of columns of a line without control characters.
func Width(line string) int {
	n := 0
	for _, r := range line {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if r < 0x300 {
		return 1 // the first combining character follows
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch eastasian.LookupRune(r).Kind() {
	case eastasian.EastAsianWide, eastasian.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut splits a word after at most the given number of columns, but at least one character.
func Cut(word string, most int) (head, rest string) {
	wide := 0
	for i, r := range word {
		wide += runeWidth(r)
		if wide > most && i > 0 {
			return word[:i], word[i:]
		}
	}
	return word, ""
}

// Short truncates a text that is wider than the limit most, and ends it with the mark.
func Short(text string, most int, mark string) string {
	head, rest := Cut(text, most)
	if rest == "" {
		return text
	}
	head, _ = Cut(head, max(most-Width(mark), 1))
	return head + mark
}

// Elide replaces the middle of a text that is wider than the limit most with the mark. Names often
// differ only at their beginning or at their end.
func Elide(text string, most int, mark string) string {
	if Width(text) <= most {
		return text
	}
	room := max(most-Width(mark), 2)
	head, rest := Cut(text, room-room/2)
	for Width(rest) > room/2 {
		_, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
	}
	return head + mark + rest
}

// Wrap breaks a line at spaces so that no piece is wider than the limit most. It breaks longer
// words anywhere, and keeps the indentation. A line that fits stays as it is.
func Wrap(line string, most int) []string {
	most = max(most, leastWrap)
	if Width(line) <= most {
		return []string{line} // keep spaces inside the line, which may form columns
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
			if Width(joined) <= most {
				piece = joined
				break
			}
			if piece != indent {
				pieces, piece = append(pieces, piece), indent
				continue
			}
			head, rest := Cut(word, most-len(indent))
			pieces, word = append(pieces, indent+head), rest
		}
	}
	return append(pieces, piece)
}
