package makefile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

const (
	// maxDepth limits how deeply variables refer to each other, because a variable may refer
	// to itself.
	maxDepth = 50
	// maxLength limits the length of an expanded text.
	maxLength = 1 << 16
)

// A variable holds a value that is expanded when the variable is used, unless simple is set.
type variable struct {
	value  string
	simple bool
	err    error // the reason why the value is not known
}

// set applies an assignment.
func (f *File) set(vars map[string]variable, rule *Rule, name, operator, value string) {
	old, found := f.lookup(name, rule)
	switch operator {
	case "=":
		vars[name] = variable{value: value}
	case "?=":
		if !found {
			vars[name] = variable{value: value}
		}
	case "!=":
		vars[name] = variable{value: "$(shell " + value + ")"}
	case "+=":
		if old.simple {
			value = f.simple(value, rule, &old)
		}
		if found && old.value != "" {
			value = old.value + " " + value
		}
		vars[name] = variable{value, old.simple, old.err}
	default: // := ::= :::=
		v := variable{simple: true}
		v.value = f.simple(value, rule, &v)
		vars[name] = v
	}
}

// simple expands the value for a simple variable.
func (f *File) simple(value string, rule *Rule, v *variable) string {
	expanded, err := f.Expand(value, rule)
	if err != nil {
		v.err = err
	}
	return expanded
}

// lookup finds a variable, which may come from the environment.
func (f *File) lookup(name string, rule *Rule) (variable, bool) {
	if rule != nil {
		if v, ok := rule.vars[name]; ok {
			return v, true
		}
	}
	if v, ok := f.vars[name]; ok {
		return v, true
	}
	switch name {
	case "CURDIR", "PWD":
		return variable{value: f.Dir, simple: true}, true
	case "MAKE":
		return variable{value: "make", simple: true}, true
	case "MAKEFILE_LIST":
		return variable{value: strings.Join(f.paths, " "), simple: true}, true
	case "MAKECMDGOALS":
		return variable{}, false
	}
	value, ok := f.env[name]
	return variable{value: value, simple: true}, ok
}

// Variable returns the expanded value of a variable.
func (f *File) Variable(name string) (string, error) { return f.Expand("$("+name+")", nil) }

// Expand replaces the references to variables and functions in a text. With a rule, the
// variables of its targets and $@ can be used. A reference whose value can be found only by
// running a command is an error, except for a few commands; see shell.
func (f *File) Expand(text string, rule *Rule) (string, error) {
	e := expander{file: f, rule: rule}
	return e.expand(text, 0)
}

// expander expands one text.
type expander struct {
	file *File
	rule *Rule
	// local holds the arguments of a $(call) and the variable of a $(foreach).
	local map[string]string
	work  int // the length of all intermediate results
}

func (e *expander) expand(text string, depth int) (string, error) {
	if depth > maxDepth {
		return "", errors.New("variables refer to each other too deeply")
	}
	var out strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i == len(text)-1 {
			out.WriteString(text)
			break
		}
		out.WriteString(text[:i])
		reference, rest := cutReference(text[i+1:])
		text = rest
		if reference == "$" {
			out.WriteByte('$')
			continue
		}
		value, err := e.reference(reference, depth+1)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		if e.work += len(value); e.work > maxLength {
			return "", errors.New("the expanded text is too long")
		}
	}
	if out.Len() > maxLength {
		return "", errors.New("the expanded text is too long")
	}
	return out.String(), nil
}

// cutReference returns the text between the brackets after a dollar sign, or the one character
// after it, and the text that follows.
func cutReference(text string) (reference, rest string) {
	closing := map[byte]byte{'(': ')', '{': '}'}[text[0]]
	if closing == 0 {
		return text[:1], text[1:]
	}
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case text[0]:
			depth++
		case closing:
			if depth--; depth == 0 {
				return text[1:i], text[i+1:]
			}
		}
	}
	return text[1:], ""
}

// generatorName matches the names of variables that hold the command controller-gen.
var generatorName = regexp.MustCompile(`(?i)^(.*_)?CONTROLLER[_-]?GEN(ERATOR)?(_BIN|_BINARY|_CMD)?$`)

// reference returns the value of a reference, given the text between $( and ).
func (e *expander) reference(text string, depth int) (string, error) {
	if name, arguments, ok := strings.Cut(text, " "); ok {
		if function, known := e.file.functions[name]; known {
			return function(e, strings.TrimLeft(arguments, " \t"), depth)
		}
		if unsupported[name] {
			return "", fmt.Errorf("koboshi does not evaluate $(%s ...)", name)
		}
	}
	name, err := e.expand(text, depth)
	if err != nil {
		return "", err
	}
	if name, pattern, ok := strings.Cut(name, ":"); ok && strings.Contains(pattern, "=") {
		from, to, _ := strings.Cut(pattern, "=")
		return e.substituted(name, from, to, depth)
	}
	return e.variable(name, depth)
}

func (e *expander) variable(name string, depth int) (string, error) {
	if value, ok := e.local[name]; ok {
		return value, nil
	}
	v, found := e.file.lookup(name, e.rule)
	value, err := v.value, v.err
	switch {
	case err == nil && !found && name == "@" && e.rule != nil && len(e.rule.Targets) > 0:
		return e.rule.Targets[0], nil
	case err == nil && !found && len(name) == 1 && strings.ContainsAny(name, "@<^+*?%|"):
		err = fmt.Errorf("koboshi does not evaluate $%s", name)
	case err == nil && !v.simple:
		value, err = e.expand(v.value, depth)
	}
	// The command controller-gen is not run, so its path does not matter.
	if generatorName.MatchString(name) && (err != nil || len(strings.Fields(value)) < 2) {
		return "controller-gen", nil
	}
	if err == nil && !found && len(e.file.Missing) > 0 {
		err = fmt.Errorf("$(%s) is not defined, and the file that %s includes was not found", name, e.file.Missing[0])
	}
	if err != nil {
		return "", err
	}
	return value, nil
}

func (e *expander) substituted(name, from, to string, depth int) (string, error) {
	value, err := e.variable(name, depth)
	if err != nil {
		return "", err
	}
	if !strings.Contains(from, "%") {
		from, to = "%"+from, "%"+to
	}
	return mapWords(value, func(word string) string { return patternSubstitute(from, to, word) }), nil
}
