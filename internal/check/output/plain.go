package output

import (
	"regexp"
	"strings"
	"unicode"
)

// escapes matches the sequences with which programs color text and move the cursor.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b[()][0-9A-Za-z]")

// Plain returns a text without colors and other controls of a terminal. It keeps line breaks and tabs.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, escapes.ReplaceAllString(text, ""))
}
