package project

import (
	"regexp"
	"slices"
	"strings"
)

// A template variable is written as in the manifests of clusterctl: ${NAME}, or with a
// default as ${NAME:=text}, ${NAME:-text}, ${NAME=text} or ${NAME-text}.
var templateVariable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[=-])([^{}]*))?\}`)

// literal reports whether the texts of an object may contain ${NAME} for another program, such as a
// script in a ConfigMap.
func literal(d document) bool { return isCRD(d) || d.is("", "ConfigMap") }

// substitute replaces template variables in all objects. The values come from the
// environment in the options. The values of a Deployment are replaced later, because only
// those of the controller's container are needed.
func (p *Project) substitute(docs []document) ([]document, error) {
	for i, d := range docs {
		if literal(d) || isWorkload(d) {
			continue
		}
		var missing string
		object := d.Object.DeepCopy()
		object.Object, _ = eachText(object.Object, func(text string) string {
			text, unknown := p.fill(text)
			if missing == "" {
				missing = unknown
			}
			return text
		}).(map[string]any)
		if missing != "" && d.is("", "Secret") {
			return nil, d.errorf("the variable %s has no value; set it with %s %s=VALUE", missing, flagEnv, missing)
		}
		docs[i].Object = *object
	}
	return docs, nil
}

// eachText returns the value with each text replaced, except the plain texts of a Secret.
func eachText(value any, replace func(string) string) any {
	switch value := value.(type) {
	case string:
		if strings.Contains(value, "${") {
			return replace(value)
		}
	case []any:
		for i := range value {
			value[i] = eachText(value[i], replace)
		}
	case map[string]any:
		for key := range value {
			if key != "stringData" {
				value[key] = eachText(value[key], replace)
			}
		}
	}
	return value
}

// fill replaces the template variables in a text. It keeps the variables that have neither a value
// nor a default, and returns the name of the first such variable.
func (p *Project) fill(text string) (filled, missing string) {
	filled = templateVariable.ReplaceAllStringFunc(text, func(found string) string {
		parts := templateVariable.FindStringSubmatch(found)
		name, operator, fallback := parts[1], parts[2], parts[3]
		value, ok := p.variable(name)
		switch {
		case ok && (value != "" || !strings.HasPrefix(operator, ":")):
			return value
		case operator != "":
			return unquote(fallback)
		case missing == "":
			missing = name
		}
		return found
	})
	return filled, missing
}

// unquote removes the quotes of a default, which are part of the syntax of YAML, as in
// value: ${NAME:=""}.
func unquote(text string) string {
	if len(text) >= 2 && (text[0] == '"' || text[0] == '\'') && text[len(text)-1] == text[0] {
		return text[1 : len(text)-1]
	}
	return text
}

// variable returns the value that the options give to a variable of the environment.
func (p *Project) variable(name string) (string, bool) {
	for _, entry := range slices.Backward(p.options.Env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// need returns a text of the controller's Pod with its template variables replaced.
func (p *Project) need(d document, text string) (string, error) {
	text, missing := p.fill(text)
	if missing != "" {
		return "", d.errorf("the variable %s has no value and no default; set it with %s %s=VALUE", missing, flagEnv, missing)
	}
	return text, nil
}

var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_.-][A-Za-z0-9_.-]*\)`)

// expand replaces $(NAME) with the value of the variable, and $$ with a dollar sign, as a
// kubelet does. It keeps unknown variables.
func expand(text string, values map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, ok := values[found[2:len(found)-1]]; ok {
			return value
		}
		return found
	})
}
