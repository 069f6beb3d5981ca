package report

import (
	"html"
	"regexp"
	"strings"
)

// A speller writes text of unknown origin so that it is shown as it is, in one kind of place of a
// Markdown document.
type speller func(text string) string

var (
	// harmless matches a word that cannot mean anything in Markdown and that no site links: letters
	// and digits, with the punctuation of a sentence around them.
	harmless = regexp.MustCompile(`^\(?[\p{L}0-9]+(?:['-][\p{L}]+)*[).,;:]*$`)
	// meaningful matches the exceptions: the hash of a commit and the beginning of an address, which a
	// site links, and a number that may begin a list.
	meaningful = regexp.MustCompile(`[0-9a-fA-F]{7,}|^\(?(?i:www)[).,;:]*$|^[0-9]+[.)]$`)
)

// prose writes a sentence that contains names. Words that could have a meaning in Markdown, mention
// somebody or become a link are written as code. The text is shortened to the given number of
// characters.
func prose(text string, most int, as speller) string {
	words := strings.Split(brief(inline(text), most), " ")
	var out, odd []string
	flush := func() {
		if len(odd) > 0 {
			out, odd = append(out, as(strings.Join(odd, " "))), nil
		}
	}
	for _, word := range words {
		switch {
		case word == "":
		case harmless.MatchString(word) && !meaningful.MatchString(word):
			flush()
			out = append(out, word)
		default:
			odd = append(odd, word)
			if tail := strings.TrimRight(word, ".,;:"); tail != word && tail != "" {
				// The punctuation of the sentence is not a part of the name.
				odd[len(odd)-1] = tail
				flush()
				out[len(out)-1] += word[len(tail):]
			}
		}
	}
	flush()
	return strings.Join(out, " ")
}

// code writes a code span. GitHub and GitLab neither mention nor link anything in code.
func code(text string) string {
	text = brief(unheard(inline(text)), mostValue)
	if text == "" {
		return ""
	}
	fence := strings.Repeat("`", longestRun(text)+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") || strings.HasPrefix(text, " ") && strings.HasSuffix(text, " ") {
		text = " " + text + " "
	}
	return fence + text + fence
}

// cell writes a code span in a cell of a table, where a pipe would end the cell even in code. A
// backslash before a pipe would itself be escaped, so such a pipe is written as its number.
func cell(text string) string {
	var b strings.Builder
	backslash := false
	for _, r := range code(text) {
		switch {
		case r == '|' && backslash:
			b.WriteString(`x7c`)
		case r == '|':
			b.WriteString(`\|`)
		default:
			b.WriteRune(r)
		}
		backslash = r == '\\'
	}
	return b.String()
}

// codeInHTML writes code in HTML, for places in which Markdown has no effect.
func codeInHTML(text string) string {
	if text = brief(unheard(inline(text)), mostValue); text == "" {
		return ""
	}
	return "<code>" + html.EscapeString(text) + "</code>"
}

// fenced returns lines as a block of code, or "" if there is none. The fence is longer than any run
// of backticks in the lines, so that no line ends the block.
func fenced(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	var b strings.Builder
	longest := 2
	for i, line := range lines {
		line = unheard(strings.TrimRight(escaped(line, false), " "))
		longest = max(longest, longestRun(line))
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	fence := strings.Repeat("`", longest+1)
	return "\n" + fence + "\n" + b.String() + "\n" + fence + "\n"
}

// longestRun returns the length of the longest run of backticks.
func longestRun(text string) (longest int) {
	run := 0
	for _, r := range text {
		run++
		if r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// brief replaces the middle of a text that has more characters than the limit most.
func brief(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	const mark = " … "
	head := (most - len([]rune(mark))) * 2 / 3
	tail := most - len([]rune(mark)) - head
	return strings.TrimSpace(string(runes[:head])) + mark + strings.TrimSpace(string(runes[len(runes)-tail:]))
}
