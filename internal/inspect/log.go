package inspect

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// LogLine is a structured line of a controller's output.
type LogLine struct {
	// Level is debug, info, warning or error, or empty if the line is not structured.
	Level   string `json:"level,omitempty"`
	Message string `json:"message"`
	// Fields holds everything else, without the fields below.
	Fields map[string]any `json:"fields,omitempty"`
	// Controller, Object and ReconcileID are set by controller-runtime within a reconcile.
	Controller  string `json:"controller,omitempty"`
	Object      *Ref   `json:"object,omitempty"`
	ReconcileID string `json:"reconcileID,omitempty"`
	// Error is the text of the error that was logged.
	Error string `json:"error,omitempty"`
}

// ParseLine parses a line of output. It knows the JSON of zap and slog, the console format of
// zap, klog's format, and key=value pairs as slog and others print them. A line in another
// format has only a message.
func ParseLine(text string) LogLine {
	text = strings.TrimSpace(escapes.ReplaceAllString(text, ""))
	if fields, ok := object1(text); ok {
		return ofFields(fields)
	}
	if m := klogHead.FindStringSubmatch(text); m != nil {
		line := ofFields(pairs(m[2]))
		line.Level = map[string]string{"I": "info", "W": "warning", "E": "error", "F": "error"}[m[1]]
		return line
	}
	if parts := strings.Split(text, "\t"); len(parts) >= 3 {
		if level := levelOf(parts[1]); level != "" {
			return console(level, parts[2:])
		}
	}
	if strings.Contains(text, "msg=") || strings.Contains(text, "level=") {
		return ofFields(pairs(text))
	}
	return LogLine{Message: text}
}

var (
	// escapes matches the escape sequences of a terminal.
	escapes  = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
	klogHead = regexp.MustCompile(`^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\] ]+\] (.*)$`)
	// pair matches key="quoted value", key={"json":…} and key=value.
	pair = regexp.MustCompile(`(?:^|\s)([A-Za-z_][\w./-]*)=("(?:[^"\\]|\\.)*"|\{.*?\}+|\S*)`)
)

// object1 decodes a text that is one JSON object.
func object1(text string) (map[string]any, bool) {
	if !strings.HasPrefix(text, "{") {
		return nil, false
	}
	var fields map[string]any
	return fields, json.Unmarshal([]byte(text), &fields) == nil
}

// console parses zap's console format after the time and the level: the name of a logger and
// the caller, both optional, then the message and the fields as JSON.
func console(level string, parts []string) LogLine {
	line := LogLine{}
	if fields, ok := object1(parts[len(parts)-1]); ok {
		parts = parts[:len(parts)-1]
		line = ofFields(fields)
	}
	line.Level = level
	if len(parts) > 0 {
		line.Message = parts[len(parts)-1]
	}
	return line
}

// pairs parses key=value pairs. A quoted text in front of them is the message, as in klog.
func pairs(text string) map[string]any {
	fields := map[string]any{}
	if strings.HasPrefix(text, `"`) {
		if quoted, err := strconv.QuotedPrefix(text); err == nil {
			fields["msg"], _ = strconv.Unquote(quoted)
			text = text[len(quoted):]
		}
	}
	matches := pair.FindAllStringSubmatchIndex(text, -1)
	if len(matches) == 0 || fields["msg"] == nil && matches[0][0] > 0 {
		head := text
		if len(matches) > 0 {
			head = text[:matches[0][0]]
		}
		fields["msg"] = strings.TrimSpace(head)
	}
	for _, m := range matches {
		key, value := text[m[2]:m[3]], text[m[4]:m[5]]
		if plain, err := strconv.Unquote(value); err == nil {
			value = plain
		}
		if inner, ok := object1(value); ok {
			fields[key] = inner
			continue
		}
		fields[key] = value
	}
	return fields
}

// ofFields builds a line from its fields.
func ofFields(fields map[string]any) LogLine {
	line := LogLine{}
	take := func(names ...string) string {
		for _, name := range names {
			if text, isText := fields[name].(string); isText {
				delete(fields, name)
				return text
			}
		}
		return ""
	}
	line.Message = take("msg", "message", "event")
	line.Level = levelOf(take("level", "severity", "lvl"))
	line.Error = take("error", "err")
	line.ReconcileID = take("reconcileID", "reconcile_id")
	line.Controller = take("controller")
	line.Object = reconciled(fields)
	take("ts", "time", "timestamp")
	if len(fields) > 0 {
		line.Fields = fields
	}
	return line
}

// reconciled returns the object that controller-runtime names in the fields: its kind and
// group, and its name either in fields or under its kind.
func reconciled(fields map[string]any) *Ref {
	text := func(key string) string { t, _ := fields[key].(string); return t }
	ref := Ref{Group: text("controllerGroup"), Kind: text("controllerKind"), Namespace: text("namespace"), Name: text("name")}
	switch value := fields[ref.Kind].(type) {
	case map[string]any:
		ref.Namespace, _ = value["namespace"].(string)
		ref.Name, _ = value["name"].(string)
	case string:
		ref.Namespace, ref.Name, _ = strings.Cut(value, "/")
		if ref.Name == "" {
			ref.Namespace, ref.Name = "", value
		}
	}
	if ref.Kind == "" || ref.Name == "" {
		return nil
	}
	for _, key := range []string{"controllerGroup", "controllerKind", "namespace", "name", ref.Kind} {
		delete(fields, key)
	}
	return &ref
}

func levelOf(text string) string {
	switch text = strings.ToLower(strings.TrimSpace(text)); text {
	case "debug", "info", "error":
		return text
	case "warn", "warning":
		return "warning"
	case "dpanic", "panic", "fatal", "critical":
		return "error"
	}
	// zap names the levels below debug by their numbers.
	if strings.HasPrefix(text, "level(") || strings.HasPrefix(text, "debug-") || strings.HasPrefix(text, "trace") {
		return "debug"
	}
	return ""
}
