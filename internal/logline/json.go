package logline

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

func parseJSON(text string) (Line, bool) {
	fields, ok := object(text)
	if !ok {
		return Line{}, false
	}
	return ofFields(JSON, fields)
}

// ofFields builds a line from all its fields. Without a message, the fields are not a line of a
// log. Other data may have a message, too, but hardly ever under zap's name for it, or together
// with a time or a level.
func ofFields(format Format, fields []Field) (Line, bool) {
	l := Line{Format: format, Fields: fields}
	msg, ok := l.Take(IsText, "msg", "message", "event")
	if !ok {
		return Line{}, false
	}
	l.Message = msg.Value
	if f, ok := l.Take(isTime, "ts", "time", "timestamp", "@timestamp"); ok {
		l.Stamp = f.Value
		l.Time, _ = timeOf(f.Value)
	}
	if f, ok := l.Take(isLevel, "level", "severity", "lvl", "levelname"); ok {
		l.Severity, l.Level = f.Value, level(f)
	}
	if l.Stamp == "" && l.Severity == "" && msg.Key != "msg" {
		return Line{}, false
	}
	if f, ok := l.Take(IsText, "logger"); ok {
		l.Logger = f.Value
	}
	if f, ok := l.Take(IsText, "caller"); ok {
		l.Caller = f.Value
	}
	if l.Severity == "" {
		l.Level = unnamed(l.Fields)
	}
	return l, true
}

func isTime(f Field) bool {
	_, ok := timeOf(f.Value)
	return ok
}

func isLevel(f Field) bool { return level(f) != Unknown }

func level(f Field) Level {
	if f.JSON {
		return numbered(f.Value)
	}
	return levelOf(f.Value)
}

// unnamed returns the level of a line that names none. Kubernetes' components print a verbosity
// with information; an error has a field with its text instead.
func unnamed(fields []Field) Level {
	found := Unknown
	for _, f := range fields {
		switch {
		case f.Key == "v" && f.JSON:
			return numbered(f.Value)
		case (f.Key == "err" || f.Key == "error") && !f.JSON:
			found = Error
		}
	}
	return found
}

// object decodes a text that is one JSON object. Its fields keep their order, and a key that
// occurs twice stays twice, as zap prints it.
func object(text string) ([]Field, bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") {
		return nil, false
	}
	text = valid(text)
	decoder := json.NewDecoder(strings.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return nil, false
	}
	fields := []Field{}
	for decoder.More() {
		key, err := decoder.Token()
		name, isText := key.(string)
		var value json.RawMessage
		if err != nil || !isText || decoder.Decode(&value) != nil {
			return nil, false
		}
		fields = append(fields, fieldOf(name, value))
	}
	_, err := decoder.Token()
	return fields, err == nil && decoder.InputOffset() == int64(len(text))
}

func fieldOf(key string, value json.RawMessage) Field {
	var text string
	if value[0] == '"' && json.Unmarshal(value, &text) == nil {
		return Field{Key: key, Value: text}
	}
	return Field{Key: key, Value: string(value), JSON: true}
}

// valid replaces bytes that are not valid UTF-8, which a decoder would lose, with an escape such as
// \xff in a JSON string.
func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			_, _ = fmt.Fprintf(&b, `\\x%02x`, text[0])
		} else {
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}
