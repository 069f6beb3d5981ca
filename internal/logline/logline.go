// Package logline parses lines of the logs that controllers print, without losing anything in
// them:
//
//	                ┌─ JSON      zap, slog, logrus, kopf, pino
//	line ─▶ Parse ──┼─ console   zap's: columns separated by tabs
//	                ├─ klog
//	                ├─ pairs     key=value: slog, logrus
//	                └─ text      a time and a level in front: Python's logging, kopf, slog
//
// For a text in another format, Parse reports that it is not a line of a log.
package logline

import (
	"strconv"
	"strings"
	"time"
)

// Format is the syntax of a line.
type Format int

const (
	// JSON is one JSON object per line.
	JSON Format = iota + 1
	// Console is zap's format for people. A stack may follow the line.
	Console
	// Klog is the format of Kubernetes' own components.
	Klog
	// Pairs consists of key=value pairs.
	Pairs
	// Text is a message after a level, and often a time.
	Text
)

// Level is the severity of a line.
type Level int

const (
	// Unknown is the level of a line that names none.
	Unknown Level = iota
	// Debug includes all levels below info.
	Debug
	// Info is the usual level.
	Info
	// Warning is a possible problem.
	Warning
	// Error includes all levels above error.
	Error
)

// Line is a line of a log.
type Line struct {
	Format Format
	// Time is the zero time if the line has none. It has the year 0 if the format has no year.
	// A time without a zone is a local one.
	Time time.Time
	// Stamp is the time as printed.
	Stamp string
	Level Level
	// Severity is the level as printed.
	Severity string
	// Logger is the name of the logger.
	Logger string
	// Caller is the file and the line of the code that logs.
	Caller  string
	Message string
	// Fields holds everything else, in its order. A key may occur more than once.
	Fields []Field
}

// Field is a value with a name.
type Field struct {
	Key string
	// Value is a text, or JSON of any other type than a string.
	Value string
	JSON  bool
}

// Parse parses a line without its end, and reports whether it is in a known format. Only a line
// in klog's format may contain line ends; see Begins.
func Parse(text string) (Line, bool) {
	for _, parse := range []func(string) (Line, bool){parseJSON, parseKlog, parseConsole, parsePairs, parseText} {
		if line, ok := parse(text); ok {
			return line, true
		}
	}
	return Line{}, false
}

// Take removes the first field that has one of the keys and satisfies the function, and returns
// it. Earlier keys take precedence.
func (l *Line) Take(is func(Field) bool, keys ...string) (Field, bool) {
	for _, key := range keys {
		for i, f := range l.Fields {
			if f.Key == key && is(f) {
				l.Fields = append(l.Fields[:i:i], l.Fields[i+1:]...)
				return f, true
			}
		}
	}
	return Field{}, false
}

// IsText reports whether the value is a text.
func IsText(f Field) bool { return !f.JSON }

// longestHead is the maximum length in bytes of what the expressions match at the beginning of
// a line, so that they need not search lines of megabytes.
const longestHead = 512

func head(text string) string { return text[:min(len(text), longestHead)] }

// levelOf returns the level for its usual names.
func levelOf(name string) Level {
	name = strings.ToLower(strings.TrimSpace(name))
	// slog prints a level between two others as INFO+2, and zap names the levels below debug by
	// their numbers.
	if at := strings.IndexAny(name, "+-("); at > 0 {
		if name[:at] == "level" {
			return Debug
		}
		name = name[:at]
	}
	switch name {
	case "debug", "trace":
		return Debug
	case "info", "notice":
		return Info
	case "warn", "warning":
		return Warning
	case "error", "err", "dpanic", "panic", "fatal", "critical":
		return Error
	}
	return Unknown
}

// numbered returns the level for a number: 10 is trace and 50 error in pino; smaller numbers are
// logr's verbosity, in which 0 is info.
func numbered(number string) Level {
	n, err := strconv.Atoi(number)
	switch {
	case err != nil || n < 0:
		return Unknown
	case n == 0:
		return Info
	case n < 30:
		return Debug
	case n < 40:
		return Info
	case n < 50:
		return Warning
	}
	return Error
}

// layouts lists the formats of times. A fraction of the second may follow the second.
var layouts = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05",
	"2006/01/02 15:04:05",
}

func timeOf(text string) (time.Time, bool) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return time.Time{}, false
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, true
		}
	}
	return epoch(text)
}

// epoch returns the time for a number since 1970: of seconds, milliseconds, microseconds or
// nanoseconds, whichever is closest to today.
func epoch(text string) (time.Time, bool) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 1e8 || n >= 1e20 {
		return time.Time{}, false
	}
	unit := time.Second
	for n >= 1e11 && unit > time.Nanosecond {
		n, unit = n/1000, unit/1000
	}
	// The second is calculated as an integer, because the nanoseconds do not fit into a float.
	return time.Unix(int64(n), int64((n-float64(int64(n)))*1e9)).Round(time.Microsecond), true
}
