package logs

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/logline"
)

// entry is a line of a log after its fields have been folded.
type entry struct {
	message string
	// problem is the text of the error.
	problem string
	stack   []frame
	// object names the object that is reconciled or reviewed, or else the controller.
	object string
	fields []logline.Field
}

// usual lists the fields that controller-runtime adds to each line of a reconcile or a review,
// apart from the name of the object, and those that repeat an error. They are not shown.
var usual = []string{
	"controller", "controllerGroup", "controllerKind", "reconcileID", "worker count",
	"webhookGroup", "webhookKind", "requestID", "errorVerbose", "panicGoValue",
}

// stacks lists the fields that hold a stack.
var stacks = []string{"stacktrace", "stack", "exc_info", "exception"}

func fold(l logline.Line) entry {
	e := entry{message: l.Message}
	if named(l.Logger) {
		e.message = l.Logger + ": " + l.Message
	}
	var stack string
	e.problem, stack = problemOf(&l)
	// For a panic, zap adds the stack of the logging call to the stack of the panic, which is more
	// useful.
	for f, ok := l.Take(isStack, stacks...); ok; f, ok = l.Take(isStack, stacks...) {
		stack = cmp.Or(stack, f.Value)
	}
	e.stack = framesOf(stack)
	if _, ok := l.Take(logline.IsText, "requestID"); ok {
		l.Take(always, "resource")
	}
	if _, ok := l.Take(logline.IsText, "hostname"); ok || l.Format == logline.Klog {
		l.Take(always, "pid") // pino and klog name the process in each line
	}
	e.object = objectOf(&l)
	for _, f := range l.Fields {
		if !slices.Contains(usual, f.Key) && !isSource(f) && (f.Key != "v" || !f.JSON) {
			e.fields = append(e.fields, f)
		}
	}
	return e
}

func always(logline.Field) bool { return true }

// named reports whether the name of a logger is more specific than the name of a library.
func named(logger string) bool {
	return logger != "" && logger != "root" && !strings.HasPrefix(logger, "controller-runtime") && !strings.HasPrefix(logger, "kopf.")
}

func isStack(f logline.Field) bool { return !f.JSON && strings.Contains(f.Value, "\n") }

// problemOf takes the error from a line: its text and, as Node.js prints it, its stack.
func problemOf(l *logline.Line) (text, stack string) {
	if f, ok := l.Take(logline.IsText, "error", "err", "panic"); ok {
		return f.Value, ""
	}
	if f, ok := l.Take(isErrorObject, "error", "err"); ok {
		o := errorOf(f)
		return o.Message, o.Stack
	}
	return "", ""
}

// errorObject is an error as loggers of Node.js print it.
type errorObject struct{ Message, Stack string }

func errorOf(f logline.Field) (o errorObject) {
	if !f.JSON || json.Unmarshal([]byte(f.Value), &o) != nil {
		return errorObject{}
	}
	return o
}

func isErrorObject(f logline.Field) bool { return errorOf(f).Message != "" }

// objectOf takes the fields that name the object from a line, and returns its kind and name. If
// there is none, it returns the name of the controller.
func objectOf(l *logline.Line) string {
	peek := func(keys ...string) string {
		c := *l
		f, _ := c.Take(logline.IsText, keys...)
		return f.Value
	}
	kind := peek("controllerKind", "webhookKind")
	namespace, name := peek("namespace"), peek("name")
	object, ok := logline.Field{}, false
	if kind != "" {
		object, ok = l.Take(isReference, kind)
	}
	if !ok {
		object, ok = l.Take(isReference, "object")
	}
	of, _ := reference(object)
	switch {
	case ok:
		if of.Kind == "" {
			of.Kind = kind
		}
	case namespace != "" && name != "":
		of = ref{Kind: kind, Namespace: namespace, Name: name}
	default:
		return peek("controller")
	}
	if name == of.Name && namespace == of.Namespace {
		l.Take(logline.IsText, "namespace")
		l.Take(logline.IsText, "name")
	}
	return of.String()
}

// ref names an object, as controller-runtime, klog and kopf do in JSON.
type ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	// References in events also have these fields.
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	FieldPath       string `json:"fieldPath"`
}

func (r ref) String() string {
	text := r.Name
	if r.Namespace != "" {
		text = r.Namespace + "/" + r.Name
	}
	if r.Kind != "" {
		text = r.Kind + " " + text
	}
	return text
}

func isReference(f logline.Field) bool {
	_, ok := reference(f)
	return ok
}

// reference returns the object that a field names, in JSON or as NAMESPACE/NAME.
func reference(f logline.Field) (ref, bool) {
	if f.JSON {
		return referenceJSON(f.Value)
	}
	if f.Value == "" || strings.ContainsAny(f.Value, " \n\t") || strings.Count(f.Value, "/") > 1 {
		return ref{}, false
	}
	namespace, name, ok := strings.Cut(f.Value, "/")
	if !ok {
		return ref{Name: f.Value}, true
	}
	return ref{Namespace: namespace, Name: name}, true
}

func referenceJSON(value string) (r ref, ok bool) {
	if !strings.HasPrefix(value, "{") {
		return ref{}, false
	}
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.DisallowUnknownFields() // or else the field says more than the name
	return r, decoder.Decode(&r) == nil && r.Name != ""
}

// isSource reports whether a field is the position in the code, as slog prints it.
func isSource(f logline.Field) bool {
	var source struct{ Function, File, Line json.RawMessage }
	return f.Key == "source" && f.JSON && json.Unmarshal([]byte(f.Value), &source) == nil && source.File != nil && source.Line != nil
}
