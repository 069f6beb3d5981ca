package project

import (
	"regexp"
	"slices"
	"strings"
)

// flagInfo describes a flag in a program's help.
type flagInfo struct {
	Type    string // empty for a boolean flag
	Default string
}

// Go programs use one of two flag packages, whose help looks like this:
//
//	-health-probe-bind-address string                (flag; the text is on the next lines)
//	    --metrics-bind-address string   The address  (pflag)
//	-h, --help                          help
var (
	flagLine    = regexp.MustCompile(`^\s+(?:-\w, )?--?([A-Za-z][\w.-]*)(?:[ \t]+([a-zA-Z]\w*)|\[=[^\]]*\])?(?:$|[ \t]{2,}|\t)(.*)$`)
	defaultText = regexp.MustCompile(`\(default "?([^")]*)"?\)`)
)

// parseHelp returns the flags in a program's help, by name.
func parseHelp(help string) map[string]flagInfo {
	flags := map[string]flagInfo{}
	current := ""
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\r\n")
		text := line
		if found := flagLine.FindStringSubmatch(line); found != nil {
			current, text = found[1], found[3]
			flags[current] = flagInfo{Type: found[2]}
		}
		if current == "" {
			continue
		}
		if found := defaultText.FindStringSubmatch(text); found != nil {
			info := flags[current]
			info.Default = found[1]
			flags[current] = info
		}
	}
	return flags
}

// argument is part of a command line: a flag with its value, or a word.
type argument struct {
	name  string // the name of a flag, without dashes
	value string
	text  []string // the argument as written
}

// booleans lists flags that take no separate value. The list is needed when there is no help text.
var booleans = []string{
	"leader-elect", "enable-leader-election", "leader-election", "metrics-secure", "enable-http2", "zap-devel", "h", "help", "v",
}

// parseArguments parses a command line as Go programs do.
func parseArguments(args []string, flags map[string]flagInfo) []argument {
	var all []argument
	for i := 0; i < len(args); i++ {
		text := args[i]
		name := strings.TrimPrefix(strings.TrimPrefix(text, "-"), "-")
		if name == text || name == "" {
			all = append(all, argument{text: []string{text}})
			continue
		}
		if name, value, ok := strings.Cut(name, "="); ok {
			all = append(all, argument{name: name, value: value, text: []string{text}})
			continue
		}
		a := argument{name: name, text: []string{text}}
		if i+1 < len(args) && takesWord(name, args[i+1], flags) {
			i++
			a.value, a.text = args[i], []string{text, args[i]}
		}
		all = append(all, a)
	}
	return all
}

func takesWord(name, next string, flags map[string]flagInfo) bool {
	if info, ok := flags[name]; ok {
		return info.Type != ""
	}
	return !strings.HasPrefix(next, "-") && !slices.Contains(booleans, name)
}
