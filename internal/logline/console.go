package logline

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// colored matches what zap prints around a level in color.
	colored = regexp.MustCompile("\x1b\\[[0-9;]*m")
	// loggerName and callerName match a column of zap's console format.
	loggerName = regexp.MustCompile(`^[\w./-]+$`)
	callerName = regexp.MustCompile(`^\S+:\d+$`)
)

// parseConsole parses zap's console format: the time, the level, the name of a logger and the
// caller, both optional, the message, and the fields as JSON.
func parseConsole(text string) (Line, bool) {
	stamp, rest, _ := strings.Cut(text, "\t")
	severity, rest, complete := strings.Cut(rest, "\t")
	severity = colored.ReplaceAllString(head(severity), "")
	l := Line{Format: Console, Stamp: stamp, Severity: severity, Level: levelOf(severity)}
	var ok bool
	if l.Time, ok = timeOf(stamp); !ok || !complete || l.Level == Unknown {
		return Line{}, false
	}
	if at := strings.LastIndexByte(rest, '\t'); at >= 0 {
		if fields, ok := object(rest[at+1:]); ok {
			l.Fields, rest = fields, rest[:at]
		}
	}
	parts := strings.Split(rest, "\t")
	if len(parts) > 1 && loggerName.MatchString(parts[0]) {
		l.Logger, parts = parts[0], parts[1:]
	}
	if len(parts) > 1 && callerName.MatchString(parts[0]) {
		l.Caller, parts = parts[0], parts[1:]
	}
	l.Message = strings.Join(slices.Clip(parts), "\t")
	return l, true
}
