package inspect

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/logline"
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

// ParseLine parses a line of output in one of the formats that package logline knows. A line in
// another format has only a message.
func ParseLine(text string) LogLine {
	text = strings.TrimSpace(escapes.ReplaceAllString(text, ""))
	l, ok := logline.Parse(text)
	if !ok {
		return LogLine{Message: text}
	}
	line := LogLine{Message: l.Message, Level: levels[l.Level]}
	take := func(keys ...string) string {
		f, _ := l.Take(logline.IsText, keys...)
		return f.Value
	}
	line.Error = take("error", "err")
	line.ReconcileID = take("reconcileID", "reconcile_id")
	line.Controller = take("controller")
	fields := fieldsOf(&l)
	line.Object = reconciled(fields)
	if len(fields) > 0 {
		line.Fields = fields
	}
	return line
}

var (
	// escapes matches the escape sequences of a terminal.
	escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
	levels  = map[logline.Level]string{logline.Debug: "debug", logline.Info: "info", logline.Warning: "warning", logline.Error: "error"}
)

// fieldsOf returns everything in a line except its time, level and message.
func fieldsOf(l *logline.Line) map[string]any {
	fields := map[string]any{}
	for _, f := range l.Fields {
		var value any = f.Value
		if f.JSON && json.Unmarshal([]byte(f.Value), &value) != nil {
			value = f.Value
		}
		fields[f.Key] = value
	}
	if l.Format == logline.Klog { // each line has them
		delete(fields, "pid")
		l.Caller = ""
	}
	for key, value := range map[string]string{"logger": l.Logger, "caller": l.Caller} {
		if value != "" {
			fields[key] = value
		}
	}
	return fields
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
