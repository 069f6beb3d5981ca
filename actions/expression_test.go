package actions

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// A scope resolves names such as steps.check.outputs.json. It fails for a name that cannot have a value,
// because GitHub would silently use an empty string.
type scope func(name string) (string, error)

var interpolation = regexp.MustCompile(`\$\{\{(.*?)\}\}`)

// interpolate replaces every ${{ expression }} in a text.
func (s scope) interpolate(text string) (string, error) {
	var failed error
	replaced := interpolation.ReplaceAllStringFunc(text, func(found string) string {
		v, err := s.evaluate(interpolation.FindStringSubmatch(found)[1])
		if err != nil {
			failed = err
		}
		return v.text()
	})
	return replaced, failed
}

// A value of an expression is a text or, if it is the result of a comparison, true or false. The
// difference matters, because the text "false" counts as true.
type value struct {
	string
	logical, yes bool
}

func (v value) text() string {
	if v.logical {
		return fmt.Sprint(v.yes)
	}
	return v.string
}

func (v value) truth() bool { return v.yes || !v.logical && v.string != "" }

func truth(yes bool) value { return value{logical: true, yes: yes} }

// evaluate evaluates an expression with the operators ||, &&, ==, !=, ! and parentheses.
func (s scope) evaluate(expression string) (value, error) {
	p := &expressionParser{scope: s, tokens: tokens.FindAllString(expression, -1)}
	if rest := strings.TrimSpace(tokens.ReplaceAllString(expression, "")); rest != "" {
		return value{}, fmt.Errorf("%s: this test does not know %q", expression, rest)
	}
	v := p.either()
	if p.err == nil && len(p.tokens) > 0 {
		p.err = fmt.Errorf("%q is left over", p.tokens)
	}
	if p.err != nil {
		return value{}, fmt.Errorf("%s: %w", expression, p.err)
	}
	return v, nil
}

var tokens = regexp.MustCompile(`\|\||&&|==|!=|!|\(|\)|'[^']*'|[A-Za-z_][\w.-]*`)

type expressionParser struct {
	scope  scope
	tokens []string
	err    error
}

func (p *expressionParser) next(token string) bool {
	if len(p.tokens) == 0 || p.tokens[0] != token {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

func (p *expressionParser) either() value {
	left := p.both()
	for p.next("||") {
		if right := p.both(); !left.truth() {
			left = right
		}
	}
	return left
}

func (p *expressionParser) both() value {
	left := p.equal()
	for p.next("&&") {
		if right := p.equal(); left.truth() {
			left = right
		}
	}
	return left
}

func (p *expressionParser) equal() value {
	left := p.operand()
	switch {
	case p.next("=="):
		return truth(strings.EqualFold(left.text(), p.operand().text()))
	case p.next("!="):
		return truth(!strings.EqualFold(left.text(), p.operand().text()))
	}
	return left
}

func (p *expressionParser) operand() value {
	switch {
	case len(p.tokens) == 0:
		p.err = errors.New("it ends too early")
		return value{}
	case p.next("!"):
		return truth(!p.operand().truth())
	case p.next("("):
		v := p.either()
		if !p.next(")") {
			p.err = errors.New("a parenthesis is missing")
		}
		return v
	}
	token := p.tokens[0]
	p.tokens = p.tokens[1:]
	if strings.HasPrefix(token, "'") {
		return value{string: strings.Trim(token, "'")}
	}
	text, err := p.scope(token)
	if err != nil {
		p.err = err
	}
	return value{string: text}
}

func TestExpressionsAreEvaluatedAsOnGitHub(t *testing.T) {
	known := scope(func(name string) (string, error) {
		text, ok := map[string]string{"inputs.on": "true", "inputs.off": "false", "inputs.none": "", "github.sha": "abc"}[name]
		if !ok {
			return "", fmt.Errorf("%s is not known", name)
		}
		return text, nil
	})
	for expression, want := range map[string]string{
		"inputs.on == 'true'":                              "true",
		"inputs.off == 'true'":                             "false",
		"inputs.off && 'a text is true'":                   "a text is true",
		"inputs.none || github.sha":                        "abc",
		"inputs.none && github.sha":                        "",
		"!inputs.none":                                     "true",
		"inputs.on == 'true' && inputs.none != ''":         "false",
		"(inputs.none == '' || inputs.none) && github.sha": "abc",
		"github.sha == 'ABC'":                              "true",
	} {
		if got, err := known.evaluate(expression); err != nil || got.text() != want {
			t.Errorf("%s is %q (%v), want %q", expression, got.text(), err, want)
		}
	}
	for _, wrong := range []string{"inputs.unknown", "inputs.on ==", "(inputs.on", "inputs.on inputs.off", "inputs.on > inputs.off"} {
		if got, err := known.evaluate(wrong); err == nil {
			t.Errorf("%s is %q, want an error", wrong, got.text())
		}
	}
	if got, err := known.interpolate("of ${{ github.sha }}, ${{ inputs.on }}"); err != nil || got != "of abc, true" {
		t.Errorf("interpolated: %q (%v)", got, err)
	}
}
