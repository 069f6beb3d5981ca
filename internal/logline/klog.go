package logline

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

var klogHead = regexp.MustCompile(`^([IWEF])(\d{4} \d\d:\d\d:\d\d\.\d+) +(\d+) ([^\s\]]+:\d+)\] `)

// parseKlog parses klog's format: structured if the message is quoted, and otherwise one text.
func parseKlog(text string) (Line, bool) {
	m := klogHead.FindStringSubmatch(head(text))
	if m == nil {
		return Line{}, false
	}
	l := Line{Format: Klog, Stamp: m[2], Severity: m[1], Caller: m[4], Message: text[len(m[0]):]}
	l.Time, _ = time.ParseInLocation("0102 15:04:05", m[2], time.Local)
	l.Level = map[string]Level{"I": Info, "W": Warning, "E": Error, "F": Error}[m[1]]
	process := Field{Key: "pid", Value: m[3]}
	if quoted, err := strconv.QuotedPrefix(l.Message); err == nil && quoted[0] == '"' {
		message, _ := strconv.Unquote(quoted) // QuotedPrefix has checked it
		if fields, ok := pairs(l.Message[len(quoted):]); ok {
			l.Message, l.Fields = message, fields
		}
	}
	if name, ok := l.Take(IsText, "logger"); ok {
		l.Logger = name.Value
	}
	l.Fields = append(l.Fields, process)
	return l, true
}

// Begins reports whether a line is the beginning of one in klog's format with a value that
// continues on the next lines:
//
//	I1126 10:00:00.123456       1 main.go:12] "Updated" status=<
//		first line
//		second line
//	 > generation=3
func Begins(text string) bool {
	return strings.HasSuffix(text, "=<") && klogHead.MatchString(head(text))
}

// Continues reports whether a line continues a message that has begun; complete means that the line
// is the last one of the message.
func Continues(text string) (continues, complete bool) {
	if strings.HasPrefix(text, "\t") {
		return true, false
	}
	closes := strings.HasPrefix(text, " >")
	return closes, closes && !strings.HasSuffix(text, "=<")
}
