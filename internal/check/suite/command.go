package suite

import (
	"regexp"
	"slices"
	"strings"
)

// reads lists programs that do not change the cluster.
var reads = []string{
	"[", "[[", ":", "basename", "cat", "cd", "cut", "date", "diff", "dirname", "echo", "egrep", "exit", "export", "false", "grep", "head", "jq", "printf",
	"seq", "set", "sed", "sleep", "sort", "tail", "test", "tr", "true", "uniq", "wc", "yq",
}

// readingVerbs lists verbs of kubectl that do not change objects. What exec does in a container
// has no effect in a check, whose Pods are simulated.
var readingVerbs = []string{
	"api-resources", "api-versions", "assert", "cluster-info", "describe", "errors", "events", "exec", "explain", "get", "logs",
	"port-forward", "top", "version", "wait",
}

// keywords lists words of the shell after which a command follows.
var keywords = []string{"!", "do", "done", "elif", "else", "fi", "if", "then", "time", "until", "while", "{", "}"}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// writes returns the first command of a script that may change the cluster, or "". It knows only
// simple scripts, and returns the whole script in doubt.
func writes(script string) string {
	commands, ok := split(script)
	if !ok {
		return script
	}
	for _, command := range commands {
		words := strings.Fields(command)
		for len(words) > 0 && (slices.Contains(keywords, words[0]) || assignment.MatchString(words[0])) {
			words = words[1:]
		}
		switch {
		case len(words) == 0, slices.Contains(reads, words[0]), words[0] == "for":
		case (words[0] == "kubectl" || words[0] == "oc") && readingVerb(words[1:]):
		default:
			return strings.Join(words, " ")
		}
	}
	return ""
}

// readingVerb reports whether the arguments of kubectl begin with a verb that changes nothing.
func readingVerb(args []string) bool {
	for len(args) > 0 {
		switch first := args[0]; {
		case slices.Contains([]string{"-n", "--namespace", "--context", "--kubeconfig"}, first) && len(args) > 1:
			args = args[2:]
		case strings.HasPrefix(first, "-"):
			args = args[1:]
		case first == "kuttl":
			args = args[1:]
		case first == "rollout":
			return len(args) > 1 && (args[1] == "status" || args[1] == "history")
		default:
			return slices.Contains(readingVerbs, first)
		}
	}
	return false
}

// duplicated matches redirections that contain an ampersand.
var duplicated = regexp.MustCompile(`[0-9]?>&[0-9]|&>`)

// split splits a script into its commands, including those in substitutions. It returns false for
// scripts with backticks, here documents, escaped quotes or quotes that do not end.
func split(script string) ([]string, bool) {
	script = strings.ReplaceAll(script, "\\\n", " ")
	if strings.Contains(script, `\"`) || strings.Contains(script, `\'`) {
		return nil, false
	}
	s := &splitter{text: []rune(duplicated.ReplaceAllString(script, " "))}
	ok := s.script(false)
	return s.commands, ok
}

// splitter reads a script.
type splitter struct {
	text     []rune
	at       int
	commands []string
}

func (s *splitter) next(prefix string) bool {
	return strings.HasPrefix(string(s.text[s.at:min(len(s.text), s.at+len(prefix))]), prefix)
}

// script reads commands until the end of the text or, in a substitution, until its parenthesis.
func (s *splitter) script(substitution bool) bool {
	var command strings.Builder
	end := func() {
		s.commands = append(s.commands, command.String())
		command.Reset()
	}
	var quote rune
	for ; s.at < len(s.text); s.at++ {
		r := s.text[s.at]
		switch {
		case quote != '\'' && r == '`', quote == 0 && (s.next("<<") || s.next("<(") || s.next(">(")):
			return false
		case quote != '\'' && s.next("$("):
			s.at += 2
			if !s.script(true) {
				return false
			}
			r = '_' // stands for the output
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '#' && strings.TrimRight(command.String(), " \t") == "":
			for s.at+1 < len(s.text) && s.text[s.at+1] != '\n' {
				s.at++
			}
			continue
		case r == ')' && substitution:
			end()
			return true
		case strings.ContainsRune("\n;|&()", r):
			end()
			continue
		}
		command.WriteRune(r)
	}
	end()
	return quote == 0 && !substitution
}

// brief returns the first line of a script that is a command, shortened.
func brief(script string) string {
	const most = 60
	for line := range strings.Lines(script) {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "set -") {
			continue
		}
		if runes := []rune(line); len(runes) > most {
			return string(runes[:most]) + "…"
		}
		return line
	}
	return ""
}
