package logline

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// firstPair matches the beginning of a line of key=value pairs.
var firstPair = regexp.MustCompile(`^[\w.@-]+=`)

// parsePairs parses a line that consists of key=value pairs, with a level and a message.
func parsePairs(text string) (Line, bool) {
	if !firstPair.MatchString(head(text)) || !strings.Contains(text, "msg=") {
		return Line{}, false
	}
	fields, ok := pairs(" " + text)
	if !ok {
		return Line{}, false
	}
	l, ok := ofFields(Pairs, fields)
	if !ok || l.Severity == "" {
		return Line{}, false
	}
	if f, ok := l.Take(isCaller, "source"); ok {
		l.Caller = f.Value
	}
	return l, true
}

func isCaller(f Field) bool { return !f.JSON && callerName.MatchString(f.Value) }

// pairs parses key=value pairs, each after a space. In klog's format, a key may contain spaces.
func pairs(text string) (fields []Field, ok bool) {
	text = strings.TrimRight(text, " ")
	for text != "" {
		if text[0] != ' ' {
			return nil, false
		}
		key, rest, ok := key(strings.TrimLeft(text, " "))
		if !ok {
			return nil, false
		}
		var f Field
		if f, text, ok = value(rest); !ok {
			return nil, false
		}
		f.Key = key
		fields = append(fields, f)
	}
	return fields, true
}

func key(text string) (key, rest string, ok bool) {
	if quoted, err := strconv.QuotedPrefix(text); err == nil && quoted[0] == '"' {
		key, _ = strconv.Unquote(quoted) // QuotedPrefix has checked it
		rest, ok = strings.CutPrefix(text[len(quoted):], "=")
		return key, rest, ok
	}
	key, rest, ok = strings.Cut(text, "=")
	return key, rest, ok && key != "" && !strings.ContainsAny(key, "\"\n\t")
}

// value parses the value at the beginning of a text: a quoted text, JSON, the lines of klog, or
// a word.
func value(text string) (f Field, rest string, ok bool) {
	if text == "" || text[0] == ' ' {
		return Field{}, text, true
	}
	switch text[0] {
	case '"':
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return Field{}, "", false
		}
		f.Value, _ = strconv.Unquote(quoted) // QuotedPrefix has checked it
		return f, text[len(quoted):], true
	case '{', '[':
		decoder := json.NewDecoder(strings.NewReader(text))
		var raw json.RawMessage
		if decoder.Decode(&raw) == nil {
			if rest = text[decoder.InputOffset():]; rest == "" || rest[0] == ' ' {
				return Field{Value: string(raw), JSON: true}, rest, true
			}
		}
	case '<':
		if lines, rest, ok := strings.Cut(text, "\n >"); ok && strings.HasPrefix(lines, "<\n\t") {
			return Field{Value: strings.ReplaceAll(lines[len("<\n\t"):], "\n\t", "\n")}, rest, true
		}
	}
	end := word(text)
	return Field{Value: text[:end]}, text[end:], !strings.Contains(text[:end], "\n")
}

// mostInBrackets is the number of bytes in which a closing bracket is searched for. Otherwise, a
// line of megabytes with many brackets that are never closed would take a time that grows with the
// square of its length.
const mostInBrackets = 1024

// word returns the length of the word at the beginning of a text. Go's %+v prints spaces inside
// brackets.
func word(text string) int {
	depth := 0
	for i := range len(text) {
		if depth > 0 && i >= mostInBrackets {
			break
		}
		switch text[i] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
		case ' ':
			if depth <= 0 {
				return i
			}
		}
	}
	if depth > 0 { // a bracket is not closed
		if end := strings.IndexByte(text, ' '); end >= 0 {
			return end
		}
	}
	return len(text)
}
