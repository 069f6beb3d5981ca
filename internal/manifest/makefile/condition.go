package makefile

import "strings"

// A truth is the value of a condition.
type truth int

const (
	no truth = iota
	yes
	perhaps // cannot be evaluated without running a command
)

// condition is an ifeq, ifneq, ifdef or ifndef with its else branches.
type condition struct {
	now   truth // whether the current branch is taken
	taken truth // whether an earlier branch is taken
}

// active reports whether the current line belongs to the Makefile.
func (p *parser) active() truth {
	result := yes
	for _, c := range p.conditions {
		switch c.now {
		case no:
			return no
		case perhaps:
			result = perhaps
		}
	}
	return result
}

// conditional reads a line that begins, continues or ends a condition. It returns false for any
// other line.
func (p *parser) conditional(text string) bool {
	word, rest, _ := strings.Cut(text, " ")
	if i := strings.IndexAny(word, "("); i > 0 { // ifeq(a,b) without a space
		word, rest = text[:i], text[i:]
	}
	switch word {
	case "ifeq", "ifneq", "ifdef", "ifndef":
		value := p.evaluate(word, strings.TrimSpace(rest))
		p.conditions = append(p.conditions, condition{now: value})
	case "else":
		if len(p.conditions) == 0 {
			return true
		}
		c := &p.conditions[len(p.conditions)-1]
		c.taken = either(c.taken, c.now)
		c.now = not(c.taken)
		inner, operand, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if inner != "" {
			c.now = both(c.now, p.evaluate(inner, strings.TrimSpace(operand)))
		}
	case "endif":
		if n := len(p.conditions); n > 0 {
			p.conditions = p.conditions[:n-1]
		}
	default:
		return false
	}
	return true
}

func (p *parser) evaluate(word, operands string) truth {
	if word == "ifdef" || word == "ifndef" {
		return p.defined(operands, word == "ifdef")
	}
	left, right, ok := p.operands(operands)
	if !ok {
		return perhaps
	}
	return truthOf((left == right) == (word == "ifeq"))
}

func (p *parser) defined(name string, want bool) truth {
	expanded, err := p.file.Expand(name, nil)
	if err != nil {
		return perhaps
	}
	v, found := p.file.lookup(expanded, nil)
	return truthOf((found && (v.value != "" || v.err != nil)) == want)
}

// operands expands the two sides of an ifeq: (a,b), "a" "b" or 'a' 'b'.
func (p *parser) operands(text string) (left, right string, ok bool) {
	switch {
	case strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")"):
		parts := splitArguments(text[1:len(text)-1], 2)
		if len(parts) != 2 {
			return "", "", false
		}
		left, right = parts[0], parts[1]
	case text != "" && (text[0] == '"' || text[0] == '\''):
		end := strings.IndexByte(text[1:], text[0])
		if end < 0 {
			return "", "", false
		}
		left, right = text[1:end+1], strings.Trim(strings.TrimSpace(text[end+2:]), `"'`)
	default:
		return "", "", false
	}
	left, err1 := p.file.Expand(strings.TrimSpace(left), nil)
	right, err2 := p.file.Expand(strings.TrimSpace(right), nil)
	return left, right, err1 == nil && err2 == nil
}

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

func not(t truth) truth {
	switch t {
	case yes:
		return no
	case no:
		return yes
	}
	return perhaps
}

func both(a, b truth) truth {
	switch {
	case a == no || b == no:
		return no
	case a == yes && b == yes:
		return yes
	}
	return perhaps
}

func either(a, b truth) truth { return not(both(not(a), not(b))) }
