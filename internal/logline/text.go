package logline

import (
	"regexp"
	"strings"
)

// stamp matches the time of a line.
const stamp = `(?P<time>\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)`

// heads match the beginning of a line, in front of the message.
var heads = []*regexp.Regexp{
	regexp.MustCompile(`^\[` + stamp + `\] +(?P<logger>\S+) +\[(?P<level>[A-Za-z]+) *\] `),           // kopf
	regexp.MustCompile(`^` + stamp + ` - (?P<logger>\S+) - (?P<level>[A-Za-z]+) - `),                 // usual with Python
	regexp.MustCompile(`^` + stamp + ` +\[(?P<level>[A-Za-z]+)\] +`),                                 // many
	regexp.MustCompile(`^` + stamp + ` +(?P<level>[A-Z]+(?:[+-]\d+)?) +`),                            // slog without a handler; a sentence may begin with Error
	regexp.MustCompile(`^(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?P<logger>[A-Za-z_][\w.]*):`), // logging.basicConfig
}

var (
	// kopfObject matches the object in front of kopf's messages.
	kopfObject = regexp.MustCompile(`^\[([^\s\]]+)\] `)
	// laterPair matches the beginning of the pairs after a message.
	laterPair = regexp.MustCompile(` [\w.-]+=`)
)

// parseText parses a message after a level.
func parseText(text string) (Line, bool) {
	for _, pattern := range heads {
		m := pattern.FindStringSubmatch(head(text))
		if m == nil {
			continue
		}
		l := Line{Format: Text, Message: text[len(m[0]):]}
		for i, name := range pattern.SubexpNames() {
			switch name {
			case "time":
				l.Stamp = m[i]
				l.Time, _ = timeOf(m[i])
			case "logger":
				l.Logger = m[i]
			case "level":
				l.Severity, l.Level = m[i], levelOf(m[i])
			}
		}
		if l.Level == Unknown {
			return Line{}, false
		}
		l.detach()
		return l, true
	}
	return Line{}, false
}

// detach moves the parts of the message that are fields to the fields.
func (l *Line) detach() {
	if m := kopfObject.FindStringSubmatch(head(l.Message)); m != nil && strings.HasPrefix(l.Logger, "kopf.") {
		l.Fields, l.Message = []Field{{Key: "object", Value: m[1]}}, l.Message[len(m[0]):]
		return
	}
	at := laterPair.FindStringIndex(l.Message)
	if at == nil || !strings.Contains(l.Stamp, "/") { // only slog prints pairs here
		return
	}
	if fields, ok := pairs(l.Message[at[0]:]); ok {
		l.Fields, l.Message = fields, l.Message[:at[0]]
	}
}
