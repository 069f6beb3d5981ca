package report

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain makes text of unknown origin safe to display. It writes visible escapes in place of
// characters that could move a cursor, color a terminal, reverse the reading direction or hide a
// letter. It keeps line ends and tabs.
func plain(s string) string { return escaped(s, true) }

// inline is like plain, but returns a single line.
func inline(s string) string { return escaped(strings.TrimSpace(s), false) }

func escaped(s string, lines bool) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || harmful(r, lines) }) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			_, _ = fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n' && !lines:
			b.WriteString(`\n`)
		case r == '\t' && !lines:
			b.WriteByte(' ')
		case r < 0x100 && harmful(r, lines):
			_, _ = fmt.Fprintf(&b, `\x%02x`, r)
		case harmful(r, lines):
			_, _ = fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

// harmful reports whether r is a control character, an invisible character of
// category Cf (which includes changes of the reading direction), or a Unicode line
// end.
func harmful(r rune, lines bool) bool {
	switch r {
	case '\n', '\t':
		return !lines
	case '\u2028', '\u2029', 0xFFFE, 0xFFFF:
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// unheard escapes text that CI systems would interpret as commands in a log: lines that begin with
// :: in GitHub Actions, and with ##[, ##vso[ or ##teamcity[ in other systems.
func unheard(line string) string {
	if text := strings.TrimLeft(line, " \t"); strings.HasPrefix(text, "::") {
		line = line[:len(line)-len(text)] + `\` + text
	}
	for _, command := range []string{"##[", "##vso[", "##teamcity["} {
		line = strings.ReplaceAll(line, command, `#\`+command[1:])
	}
	return line
}

// calm uses JSON escapes for characters that a terminal could interpret, because
// encoding/json escapes only some of them. In JSON, such characters occur only inside
// strings, so escaping them is safe.
func calm(data []byte) []byte {
	if !bytes.ContainsFunc(data, func(r rune) bool { return harmful(r, true) }) {
		return data
	}
	var b bytes.Buffer
	for _, r := range string(data) {
		switch {
		case !harmful(r, true):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF
			_, _ = fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			_, _ = fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// Inline makes text of unknown origin safe to display on one line: characters that could control a
// terminal are written as visible escapes. If spaces is set, Inline keeps spaces around the text.
func Inline(s string, spaces bool) string {
	if spaces {
		return escaped(s, false)
	}
	return inline(s)
}
