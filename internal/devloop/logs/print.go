package logs

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/koboshi-dev/koboshi/internal/logline"
	"github.com/koboshi-dev/koboshi/internal/textwidth"
)

const (
	clock = "15:04:05.000"
	// margin is the width of the time and the level.
	margin = len(clock) + len(" I ")
	// leastWidth is the smallest width that a terminal is assumed to have.
	leastWidth = 40
	// mostLines and mostErrorLines limit the lines of a message and of an error.
	mostLines, mostErrorLines = 3, 40

	ellipsis = "…"
)

// indent aligns the following lines with the message.
var indent = strings.Repeat(" ", margin)

// style is a style of text on a terminal.
type style string

const (
	normal style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "1;31"
	yellow style = "1;33"
	green  style = "32"
	cyan   style = "36"
)

func (p *Printer) paint(s style, text string) string {
	if !p.o.Color || s == normal || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// mark returns the letter and the style of a level.
func mark(l logline.Level) (string, style) {
	switch l {
	case logline.Debug:
		return "D", dim
	case logline.Info:
		return "I", green
	case logline.Warning:
		return "W", yellow
	case logline.Error:
		return "E", red
	case logline.Unknown:
	}
	return " ", normal
}

// width returns the width of the terminal, or 0 if nothing has to fit.
func (p *Printer) width() int {
	if p.o.Width == nil {
		return 0
	}
	width := p.o.Width()
	if width <= 0 {
		return 0
	}
	return max(width, leastWidth)
}

// short returns one short line, and an error and a stack on lines of their own.
func (p *Printer) short(l logline.Line) string {
	e, width := fold(l), p.width()
	letter, color := mark(l.Level)
	text, most := normal, mostLines
	if l.Level >= logline.Warning {
		text, most = bold, mostErrorLines
	}
	var b strings.Builder
	b.WriteString(p.paint(dim, p.at(l.Time)) + " " + p.paint(color, letter))
	last := 0
	for i, line := range paragraph(e.message, width, most) {
		before := " "
		if i > 0 {
			before = "\n" + indent
		}
		if line != "" {
			b.WriteString(before + p.paint(text, line))
		} else if i > 0 {
			b.WriteByte('\n')
		}
		last = textwidth.Width(line)
	}
	b.WriteString(p.tail(e, last, width) + "\n")
	if e.problem != "" {
		for _, line := range paragraph(e.problem, width, mostErrorLines) {
			b.WriteString(strings.TrimRight(indent+p.paint(red, line), " ") + "\n")
		}
	}
	b.WriteString(p.frames(e.stack))
	return b.String()
}

// at returns the time of day to show for a line. Many loggers print whole seconds; for a line that
// is less than two seconds old, the present time is more precise.
func (p *Printer) at(t time.Time) string {
	now := p.now()
	whole := t.Nanosecond() == 0
	switch {
	case t.IsZero(), whole && now.After(t) && now.Sub(t) < 2*time.Second:
		return now.Local().Format(clock)
	case whole:
		return t.Local().Format(time.TimeOnly) + strings.Repeat(" ", len(clock)-len(time.TimeOnly))
	}
	return t.Local().Format(clock)
}

// paragraph breaks a text into lines that fit beside the margin.
func paragraph(text string, width, most int) (lines []string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\r\n"), "\n") {
		line = visible(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    "))
		if width == 0 {
			lines = append(lines, line)
			continue
		}
		lines = append(lines, textwidth.Wrap(line, width-margin)...)
	}
	if width > 0 && len(lines) > most {
		lines = lines[:most]
		end := &lines[most-1]
		*end = textwidth.Short(*end+" "+ellipsis, width-margin, ellipsis)
	}
	return lines
}

// field is a field in the form in which it is shown. The object has no key.
type field struct{ key, value string }

func (f field) width() int { return textwidth.Width(f.key) + textwidth.Width(f.value) }

func (p *Printer) paintField(f field) string {
	if f.key == "" {
		return p.paint(cyan, f.value)
	}
	return p.paint(dim, f.key) + f.value
}

// tail returns the object and the fields for the end of a message. The parameter last is the width
// of the message's last line. If the object and the fields fit better on a line of their own, tail
// begins a new line.
func (p *Printer) tail(e entry, last, width int) string {
	var fields []field
	if e.object != "" {
		fields = append(fields, field{value: visible(e.object)})
	}
	for _, f := range e.fields {
		fields = append(fields, field{quoted(f.Key) + "=", folded(f)})
	}
	if len(fields) == 0 {
		return ""
	}
	before := "  "
	if last == 0 {
		before = " "
	}
	fitted, same := fit(fields, width, width-margin-last-len("  "))
	if !same {
		before = "\n" + indent
	}
	for i, f := range fitted {
		if i > 0 {
			before += " "
		}
		before += p.paintField(f)
	}
	if hidden := len(fields) - len(fitted); hidden > 0 {
		before += p.paint(dim, more(hidden))
	}
	return before
}

// more marks that fields are missing at the end of a line.
func more(hidden int) string { return " " + ellipsis + "+" + strconv.Itoa(hidden) }

// fit shortens long values until the fields fit. They stay on the same line if this cuts little,
// and otherwise get a line of their own. If even short values do not fit, the last fields are left
// out.
func fit(fields []field, width, rest int) (fitted []field, same bool) {
	if width == 0 {
		return fields, true
	}
	own := width - margin
	for _, try := range []struct {
		limit, room int
		same        bool
	}{{0, rest, true}, {48, rest, true}, {32, rest, true}, {0, own, false}, {48, own, false}, {32, own, false}, {20, own, false}} {
		if cut := cutTo(fields, try.limit); total(cut) <= try.room {
			return cut, try.same
		}
	}
	fitted = cutTo(fields, 20)
	own -= textwidth.Width(more(len(fields)))
	for len(fitted) > 1 && total(fitted) > own {
		fitted = fitted[:len(fitted)-1]
	}
	if total(fitted) > own { // the only one left
		fitted = cutTo(fitted, own/2)
	}
	return fitted, false
}

func total(fields []field) int {
	n := len(fields) - 1
	for _, f := range fields {
		n += f.width()
	}
	return n
}

// cutTo cuts keys and values to a number of columns; 0 means no limit.
func cutTo(fields []field, limit int) []field {
	if limit == 0 {
		return fields
	}
	cut := make([]field, len(fields))
	for i, f := range fields {
		cut[i] = field{key: f.key, value: textwidth.Short(f.value, limit, ellipsis)}
		if textwidth.Width(f.key) > limit {
			cut[i].key = textwidth.Short(f.key, limit-1, ellipsis) + "="
		}
	}
	return cut
}

// folded returns the value of a field. A reference to an object is folded to its name.
func folded(f logline.Field) string {
	if f.JSON {
		if r, ok := referenceJSON(f.Value); ok {
			if strings.EqualFold(r.Kind, f.Key) {
				r.Kind = ""
			}
			return quoted(r.String())
		}
	}
	return unfolded(f)
}

// full writes a line with everything in it, in its order.
func (p *Printer) full(l logline.Line) string {
	var stack string
	for f, ok := l.Take(logline.IsText, "stacktrace"); ok; f, ok = l.Take(logline.IsText, "stacktrace") {
		stack += strings.TrimRight(f.Value, "\n") + "\n"
	}
	_, color := mark(l.Level)
	words := []string{p.paint(dim, visible(l.Stamp)), p.paint(color, visible(l.Severity)), visible(l.Message)}
	named := []logline.Field{{Key: "logger", Value: l.Logger}, {Key: "caller", Value: l.Caller}}
	for i, f := range append(named, l.Fields...) {
		if i >= len(named) || f.Value != "" {
			words = append(words, p.paintField(field{quoted(f.Key) + "=", unfolded(f)}))
		}
	}
	var b strings.Builder
	for _, word := range words {
		if word != "" && b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	b.WriteByte('\n')
	for line := range strings.Lines(stack) {
		b.WriteString("    " + visible(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    ")) + "\n")
	}
	return b.String()
}

func unfolded(f logline.Field) string {
	if f.JSON {
		return visible(f.Value)
	}
	return quoted(f.Value)
}

// quoted returns a text that is one word, or else in quotes with Go's escapes.
func quoted(text string) string {
	if text == "" || strings.ContainsAny(text, ` "=`) || visible(text) != text {
		return strconv.Quote(text)
	}
	return text
}

// visible replaces invisible characters, and those that could control a terminal, with Go's
// escapes.
func visible(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[0]), 16))
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			escape := strconv.QuoteRune(r)
			b.WriteString(escape[1 : len(escape)-1])
		}
		text = text[size:]
	}
	return b.String()
}
