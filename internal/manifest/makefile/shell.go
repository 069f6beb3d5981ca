package makefile

import (
	"errors"
	"regexp"
	"strings"
)

// A Command is a simple command of a recipe.
type Command struct {
	// Env holds the assignments before the command, such as GOFLAGS=-mod=mod.
	Env  []string
	Args []string
	// Dynamic means that the shell computes an argument or decides whether the command runs.
	Dynamic bool
	// Redirected means that the standard output goes to a file or to another command.
	Redirected bool
}

// environment matches an assignment before a command.
var environment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// keywords lists the words that a command may follow.
var keywords = map[string]bool{"{": true, "}": true, "!": true, "(": true, ")": true, "then": true, "do": true, "else": true, "if": true, "while": true, "elif": true}

// Split splits an expanded line of a recipe into its simple commands.
func Split(line string) ([]Command, error) {
	s := splitter{text: strings.TrimLeft(join(line), "@-+ \t\n")}
	for s.at < len(s.text) {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	s.endCommand()
	return s.commands, nil
}

// splitter reads a line as a shell does.
type splitter struct {
	text     string
	at       int
	commands []Command

	current  Command
	word     strings.Builder
	inWord   bool
	quoted   bool // the word has a quoted part
	redirect bool // the next word is the target of a redirection
	nested   int  // the number of loops and conditions around the command
}

// next reads the next character or operator.
func (s *splitter) next() error {
	c := s.text[s.at]
	switch c {
	case ' ', '\t':
		s.endWord()
	case '\n', ';', '&', '|', '(', ')':
		s.operator(c)
	case '>', '<':
		s.redirection(c)
	case '\'', '"':
		return s.quote(c)
	case '\\':
		s.inWord = true
		if s.at++; s.at < len(s.text) {
			s.word.WriteByte(s.text[s.at])
		}
	case '#':
		if !s.inWord {
			s.at = len(s.text)
			return nil
		}
		s.word.WriteByte(c)
	case '$', '`':
		s.current.Dynamic = true
		fallthrough
	default:
		s.inWord = true
		s.word.WriteByte(c)
	}
	s.at++
	return nil
}

func (s *splitter) operator(c byte) {
	s.endWord()
	double := s.at+1 < len(s.text) && s.text[s.at+1] == c
	if c == '|' && !double {
		s.current.Redirected = true
	}
	if double {
		s.at++
	}
	s.endCommand()
}

func (s *splitter) redirection(c byte) {
	// The number of a file descriptor stands directly before the operator.
	descriptor := s.word.String()
	if s.inWord && (descriptor == "1" || descriptor == "2") {
		s.word.Reset()
		s.inWord = false
	} else {
		descriptor = ""
	}
	s.endWord()
	if c == '>' && descriptor != "2" {
		s.current.Redirected = true
	}
	for s.at+1 < len(s.text) && (s.text[s.at+1] == c || s.text[s.at+1] == '&') {
		s.at++
	}
	s.redirect = true
}

// quote reads a quoted part of a word.
func (s *splitter) quote(c byte) error {
	s.inWord, s.quoted = true, true
	for s.at++; s.at < len(s.text); s.at++ {
		switch q := s.text[s.at]; {
		case q == c:
			s.at++
			return nil
		case c == '"' && (q == '$' || q == '`'):
			s.current.Dynamic = true
			s.word.WriteByte(q)
		case c == '"' && q == '\\' && s.at+1 < len(s.text) && strings.IndexByte("\"\\$`", s.text[s.at+1]) >= 0:
			s.at++
			s.word.WriteByte(s.text[s.at])
		default:
			s.word.WriteByte(q)
		}
	}
	return errors.New("a quotation mark is not closed")
}

func (s *splitter) endWord() {
	if !s.inWord {
		return
	}
	word, quoted := s.word.String(), s.quoted
	s.word.Reset()
	s.inWord, s.quoted = false, false
	switch {
	case s.redirect:
		s.redirect = false
	case len(s.current.Args) == 0 && !quoted && s.keyword(word):
	case len(s.current.Args) == 0 && environment.MatchString(word):
		s.current.Env = append(s.current.Env, word)
	default:
		s.current.Args = append(s.current.Args, word)
	}
}

// keyword handles a word of the shell's own language.
func (s *splitter) keyword(word string) bool {
	switch word {
	case "if", "while", "for", "until", "case":
		s.nested++
	case "fi", "done", "esac":
		s.nested = max(s.nested-1, 0)
		return true
	}
	return keywords[word]
}

func (s *splitter) endCommand() {
	s.endWord()
	s.redirect = false
	c := s.current
	c.Dynamic = c.Dynamic || s.nested > 0
	if len(c.Args) > 0 {
		s.commands = append(s.commands, c)
	}
	s.current = Command{}
}
