package makefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// assignment matches a line that sets a variable: the modifiers, the name, the operator and
// the value.
var assignment = regexp.MustCompile(`^\s*((?:(?:export|override|private|unexport)\s+)*)([^\s:#=+?!]+)\s*(:{0,3}=|\?=|\+=|!=)\s*(.*)$`)

// parser reads one file.
type parser struct {
	file *File
	path string
	// rule is the rule to which a following recipe belongs.
	rule *Rule
	// conditions holds the ifeq, ifdef and so on that are not closed yet.
	conditions []condition
	// define is the variable whose lines follow, or empty.
	define     string
	defineText []string
	defineDeep int
}

// parse reads the text of a file.
func (f *File) parse(path, text string) error {
	if len(f.paths) >= maxFiles {
		return fmt.Errorf("%s: more than %d Makefiles are included; does a file include itself?", path, maxFiles)
	}
	f.paths = append(f.paths, path)
	p := &parser{file: f, path: path}
	number := 0
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for len(lines) > 0 {
		line, used := lines[0], 1
		for continues(line) && used < len(lines) && p.define == "" {
			line += "\n" + lines[used]
			used++
		}
		if err := p.line(line, Position{path, number + 1}); err != nil {
			return err
		}
		number += used
		lines = lines[used:]
	}
	return nil
}

// continues reports whether the line ends with an odd number of backslashes.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// line reads one line, which contains the lines that continue it.
func (p *parser) line(line string, at Position) error {
	if p.define != "" {
		p.defineLine(line)
		return nil
	}
	if strings.HasPrefix(line, "\t") && p.rule != nil {
		if p.active() != no {
			p.rule.Recipe = append(p.rule.Recipe, Line{at, strings.TrimPrefix(line, "\t")})
		}
		return nil
	}
	text := strings.TrimSpace(stripComment(join(line)))
	if text == "" {
		return nil
	}
	if p.conditional(text) || p.active() == no {
		return nil
	}
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "define":
		p.openDefine(rest)
		return nil
	case "include", "-include", "sinclude":
		p.rule = nil
		return p.include(rest, at)
	}
	if match := assignment.FindStringSubmatch(text); match != nil {
		p.rule = nil
		p.assign(p.file.vars, nil, match, at)
		return nil
	}
	p.readRule(text, at)
	return nil
}

// join replaces each backslash at the end of a line, and the line break after it, with a space.
func join(line string) string {
	parts := strings.Split(line, "\\\n")
	for i := range parts {
		if i > 0 {
			parts[i] = strings.TrimLeft(parts[i], " \t")
		}
		if i < len(parts)-1 {
			parts[i] = strings.TrimRight(parts[i], " \t")
		}
	}
	return strings.Join(parts, " ")
}

// stripComment removes a comment. A number sign in a reference to a variable or a function is
// kept, although make would remove it, because people write $(shell grep '#' file).
func stripComment(line string) string {
	depth := 0
	for i := range len(line) {
		switch line[i] {
		case '(', '{':
			if i > 0 && line[i-1] == '$' || depth > 0 {
				depth++
			}
		case ')', '}':
			depth = max(depth-1, 0)
		case '#':
			if depth == 0 && (i == 0 || line[i-1] != '\\') {
				return line[:i]
			}
		}
	}
	return line
}

func (p *parser) openDefine(rest string) {
	p.define = "?" // a name that cannot be referred to
	if fields := strings.Fields(rest); len(fields) > 0 {
		p.define = fields[0]
	}
	p.defineText, p.defineDeep = nil, 1
}

func (p *parser) defineLine(line string) {
	switch word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word {
	case "define":
		p.defineDeep++
	case "endef":
		p.defineDeep--
	}
	if p.defineDeep > 0 {
		p.defineText = append(p.defineText, line)
		return
	}
	p.file.vars[p.define] = variable{value: strings.Join(p.defineText, "\n")}
	p.define = ""
}

func (p *parser) include(rest string, at Position) error {
	expanded, err := p.file.Expand(rest, nil)
	if err != nil {
		p.file.Missing = append(p.file.Missing, at)
		return nil
	}
	for _, pattern := range strings.Fields(expanded) {
		paths := []string{p.file.abs(pattern)}
		if strings.ContainsAny(pattern, "*?[") {
			if paths, err = filepath.Glob(p.file.abs(pattern)); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
		}
		for _, path := range paths {
			if err := p.includeFile(path, at); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *parser) includeFile(path string, at Position) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		p.file.Missing = append(p.file.Missing, at)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	name, err := filepath.Rel(p.file.Dir, path)
	if err != nil {
		name = path
	}
	return p.file.parse(filepath.ToSlash(name), string(data))
}

func (f *File) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(f.Dir, path)
}

// readRule reads the first line of a rule. A line that is not a rule, such as vpath or a call
// of a function, is ignored.
func (p *parser) readRule(text string, at Position) {
	p.rule = nil
	targets, rest, found := cutColon(text)
	if !found {
		return
	}
	rule := &Rule{Targets: p.words(targets), vars: map[string]variable{}}
	p.file.Rules = append(p.file.Rules, rule)
	p.rule = rule
	rest = strings.TrimPrefix(rest, ":") // a::b
	if match := assignment.FindStringSubmatch(rest); match != nil {
		p.assign(rule.vars, rule, match, at)
		return
	}
	rest, recipe, inline := strings.Cut(rest, ";")
	if inline {
		rule.Recipe = append(rule.Recipe, Line{at, strings.TrimSpace(recipe)})
	}
	if _, last, static := cutColon(rest); static {
		rest = last // targets: pattern: prerequisites
	}
	for _, word := range p.words(rest) {
		if word != "|" {
			rule.Prerequisites = append(rule.Prerequisites, word)
		}
	}
}

// cutColon cuts the text at the first colon that is not part of a reference.
func cutColon(text string) (before, after string, found bool) {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{':
			depth++
		case ')', '}':
			depth = max(depth-1, 0)
		case ':':
			if depth == 0 {
				return text[:i], text[i+1:], true
			}
		}
	}
	return text, "", false
}

// words expands a list of names. Names that cannot be expanded are left out, because targets that
// run generators are unlikely to have such names.
func (p *parser) words(text string) (words []string) {
	for _, word := range fields(text) {
		if expanded, err := p.file.Expand(word, nil); err == nil {
			words = append(words, strings.Fields(expanded)...)
		}
	}
	return words
}

// fields splits text at spaces that are not part of a reference.
func fields(text string) (words []string) {
	depth, start := 0, -1
	for i := 0; i <= len(text); i++ {
		if i == len(text) || depth == 0 && (text[i] == ' ' || text[i] == '\t') {
			if start >= 0 {
				words = append(words, text[start:i])
			}
			start = -1
			continue
		}
		if start < 0 {
			start = i
		}
		switch text[i] {
		case '(', '{':
			depth++
		case ')', '}':
			depth = max(depth-1, 0)
		}
	}
	return words
}

// assign sets a variable, either globally or for the targets of a rule.
func (p *parser) assign(vars map[string]variable, rule *Rule, match []string, at Position) {
	modifiers, name, operator, value := match[1], match[2], match[3], match[4]
	expandedName, err := p.file.Expand(name, rule)
	if err != nil {
		return
	}
	if strings.Contains(modifiers, "unexport") {
		return
	}
	if p.active() == perhaps {
		vars[expandedName] = variable{err: fmt.Errorf("%s depends on a condition (%s) that koboshi cannot evaluate", expandedName, at)}
		return
	}
	p.file.set(vars, rule, expandedName, operator, value)
}
