package chart

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// marks puts actions of Helm's template language into objects. While an object is data, each action
// is represented by a mark, a word that needs no quotes in YAML; text then replaces the marks.
type marks struct {
	// word begins each mark. It sorts behind the names of fields, so that a mark is never the
	// first field of an object in a list, where its line would begin with "- ".
	word    string
	actions []string
}

// newMarks returns marks that do not occur in a text.
func newMarks(text string) *marks {
	word := "zmark"
	for strings.Contains(text, word) {
		word += "z"
	}
	return &marks{word: word}
}

// add returns a mark for a text with actions, which may contain other marks. If the mark is a whole
// item of a list, or a field with an empty value, then the text may have several lines, which get
// the indentation of the mark. In such a text, "nindent +2" means two more columns than that.
func (m *marks) add(text string) string {
	m.actions = append(m.actions, text)
	return fmt.Sprintf("%s%dq", m.word, len(m.actions)-1)
}

// value returns a mark for the value of an expression inside a string.
func (m *marks) value(expression string) string { return m.add("{{ " + expression + " }}") }

// quoted returns a mark for the value of an expression that is a whole string. Without quotes, a
// namespace such as 123 would become a number.
func (m *marks) quoted(expression string) string { return m.value(expression + " | quote") }

// field adds lines to an object.
func (m *marks) field(object map[string]any, lines string) { object[m.add(lines)] = "" }

// fieldIf keeps a field of an object only under a condition.
func (m *marks) fieldIf(condition string, object map[string]any, name string) error {
	text, err := m.yaml(map[string]any{name: object[name]})
	if err != nil {
		return err
	}
	delete(object, name)
	m.field(object, guarded(condition, text))
	return nil
}

// replace makes a field the value at a path, and omits the field if the value is empty.
func (m *marks) replace(object map[string]any, name, path string) {
	delete(object, name)
	m.field(object, fmt.Sprintf("{{- with .Values.%s }}\n%s:\n  {{- toYaml . | nindent +2 }}\n{{- end }}\n", path, name))
}

// extend appends the list or the fields at a path to a list or an object.
func (m *marks) extend(object map[string]any, name, path string) {
	appended := fmt.Sprintf("{{- with .Values.%s }}\n{{- toYaml . | nindent +0 }}\n{{- end }}\n", path)
	switch old := object[name].(type) {
	case []any:
		if len(old) > 0 {
			object[name] = append(old, m.add(appended))
			return
		}
	case map[string]any:
		if len(old) > 0 {
			m.field(old, appended)
			return
		}
	}
	m.replace(object, name, path)
}

// guarded returns lines that are there only under a condition.
func guarded(condition, lines string) string {
	return "{{- if " + condition + " }}\n" + strings.TrimSuffix(lines, "\n") + "\n{{- end }}\n"
}

// yaml returns a value in YAML. Braces in the value stay braces, because they are not ours.
func (m *marks) yaml(value any) (string, error) {
	data, err := yaml.Marshal(value)
	return strings.ReplaceAll(string(data), "{{", `{{ "{{" }}`), err
}

// text returns a value as the text of a template.
func (m *marks) text(value any) (string, error) {
	text, err := m.yaml(value)
	// An action contains only marks that are older than its own.
	for i := len(m.actions) - 1; i >= 0 && err == nil; i-- {
		text = m.resolve(text, i)
	}
	return text, err
}

var relativeIndent = regexp.MustCompile(`nindent \+(\d+)`)

// resolve replaces one mark.
func (m *marks) resolve(text string, i int) string {
	mark := fmt.Sprintf("%s%dq", m.word, i)
	if !strings.Contains(text, mark) {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		switch strings.TrimSpace(line) {
		case "- " + mark, mark + `: ""`:
			out.WriteString(indented(m.actions[i], indent))
		default:
			out.WriteString(strings.ReplaceAll(line, mark, m.actions[i]))
		}
	}
	return out.String()
}

// indented indents the lines of an action.
func indented(lines, indent string) string {
	lines = relativeIndent.ReplaceAllStringFunc(lines, func(call string) string {
		more, _ := strconv.Atoi(strings.TrimPrefix(call, "nindent +"))
		return fmt.Sprintf("nindent %d", len(indent)+more)
	})
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSuffix(lines, "\n")) {
		if line != "\n" {
			out.WriteString(indent)
		}
		out.WriteString(line)
	}
	return out.String() + "\n"
}
