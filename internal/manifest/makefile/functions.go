package makefile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A function evaluates a call from its arguments, which are not expanded yet.
type function func(e *expander, arguments string, depth int) (string, error)

// unsupported lists make's other functions.
var unsupported = map[string]bool{
	"eval": true, "file": true, "flavor": true, "guile": true, "let": true, "origin": true, "value": true, "intcmp": true,
}

// allFunctions returns the functions that are evaluated.
func allFunctions() map[string]function {
	return map[string]function{
		"abspath":    words(func(e *expander, word string) string { return filepath.Clean(e.file.abs(word)) }),
		"addprefix":  expanded(2, func(_ *expander, a []string) string { return mapWords(a[1], func(w string) string { return a[0] + w }) }),
		"addsuffix":  expanded(2, func(_ *expander, a []string) string { return mapWords(a[1], func(w string) string { return w + a[0] }) }),
		"and":        and,
		"basename":   words(func(_ *expander, word string) string { return strings.TrimSuffix(word, filepath.Ext(word)) }),
		"call":       call,
		"dir":        words(func(_ *expander, word string) string { return word[:strings.LastIndexByte(word, '/')+1] }),
		"error":      message,
		"filter":     expanded(2, func(_ *expander, a []string) string { return filter(a[0], a[1], true) }),
		"filter-out": expanded(2, func(_ *expander, a []string) string { return filter(a[0], a[1], false) }),
		"findstring": expanded(2, func(_ *expander, a []string) string {
			if strings.Contains(a[1], a[0]) {
				return a[0]
			}
			return ""
		}),
		"firstword": expanded(1, func(_ *expander, a []string) string { return nth(a[0], 0) }),
		"foreach":   foreach,
		"if":        ifFunction,
		"info":      message,
		"lastword":  expanded(1, func(_ *expander, a []string) string { return nth(a[0], len(strings.Fields(a[0]))-1) }),
		"notdir":    words(func(_ *expander, word string) string { return word[strings.LastIndexByte(word, '/')+1:] }),
		"or":        or,
		"patsubst": expanded(3, func(_ *expander, a []string) string {
			return mapWords(a[2], func(word string) string { return patternSubstitute(a[0], a[1], word) })
		}),
		"realpath": words(func(e *expander, word string) string {
			path, err := filepath.EvalSymlinks(e.file.abs(word))
			if err != nil {
				return ""
			}
			return path
		}),
		"shell": shell,
		"sort": expanded(1, func(_ *expander, a []string) string {
			return strings.Join(slices.Compact(slices.Sorted(slices.Values(strings.Fields(a[0])))), " ")
		}),
		"strip":    expanded(1, func(_ *expander, a []string) string { return strings.Join(strings.Fields(a[0]), " ") }),
		"subst":    expanded(3, func(_ *expander, a []string) string { return replaceAll(a[2], a[0], a[1]) }),
		"warning":  message,
		"wildcard": expanded(1, wildcard),
		"word": expanded(2, func(_ *expander, a []string) string {
			n, err := strconv.Atoi(strings.TrimSpace(a[0]))
			if err != nil {
				return ""
			}
			return nth(a[1], n-1)
		}),
		"words": expanded(1, func(_ *expander, a []string) string { return strconv.Itoa(len(strings.Fields(a[0]))) }),
	}
}

// expanded returns a function that gets n expanded arguments. The last argument may contain
// commas.
func expanded(n int, f func(e *expander, arguments []string) string) function {
	return func(e *expander, text string, depth int) (string, error) {
		arguments := make([]string, n)
		for i, argument := range splitArguments(text, n) {
			value, err := e.expand(argument, depth)
			if err != nil {
				return "", err
			}
			arguments[i] = value
		}
		return f(e, arguments), nil
	}
}

// words returns a function that maps each word of its argument.
func words(f func(e *expander, word string) string) function {
	return expanded(1, func(e *expander, a []string) string {
		return mapWords(a[0], func(word string) string { return f(e, word) })
	})
}

// splitArguments splits a text at its commas into at most n parts.
func splitArguments(text string, n int) (parts []string) {
	depth, start := 0, 0
	for i := 0; i < len(text) && len(parts) < n-1; i++ {
		switch text[i] {
		case '(', '{':
			depth++
		case ')', '}':
			depth = max(depth-1, 0)
		case ',':
			if depth == 0 {
				parts = append(parts, text[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, text[start:])
}

// replaceAll is strings.ReplaceAll, except that nothing is inserted between characters.
func replaceAll(text, old, replacement string) string {
	if old == "" {
		return text
	}
	if len(replacement) > len(old) && len(replacement)*strings.Count(text, old) > maxLength {
		return text
	}
	return strings.ReplaceAll(text, old, replacement)
}

func mapWords(text string, f func(string) string) string {
	var mapped []string
	for _, word := range strings.Fields(text) {
		if word = f(word); word != "" {
			mapped = append(mapped, word)
		}
	}
	return strings.Join(mapped, " ")
}

func nth(text string, n int) string {
	if all := strings.Fields(text); n >= 0 && n < len(all) {
		return all[n]
	}
	return ""
}

// matchPattern returns the part of the word that the percent sign of the pattern matches.
func matchPattern(pattern, word string) (stem string, ok bool) {
	before, after, found := strings.Cut(pattern, "%")
	if !found {
		return "", pattern == word
	}
	if len(word) < len(before)+len(after) || !strings.HasPrefix(word, before) || !strings.HasSuffix(word, after) {
		return "", false
	}
	return word[len(before) : len(word)-len(after)], true
}

func patternSubstitute(from, to, word string) string {
	stem, ok := matchPattern(from, word)
	if !ok {
		return word
	}
	return strings.Replace(to, "%", stem, 1)
}

func filter(patterns, text string, keep bool) string {
	return mapWords(text, func(word string) string {
		matches := slices.ContainsFunc(strings.Fields(patterns), func(pattern string) bool {
			_, ok := matchPattern(pattern, word)
			return ok
		})
		if matches != keep {
			return ""
		}
		return word
	})
}

func wildcard(e *expander, arguments []string) string {
	var found []string
	for _, pattern := range strings.Fields(arguments[0]) {
		paths, err := filepath.Glob(e.file.abs(pattern))
		if err != nil {
			continue
		}
		for _, path := range paths {
			if name, err := filepath.Rel(e.file.Dir, path); err == nil && !filepath.IsAbs(pattern) {
				prefix := ""
				if strings.HasPrefix(pattern, "./") {
					prefix = "./"
				}
				path = prefix + filepath.ToSlash(name)
			}
			found = append(found, path)
		}
	}
	return strings.Join(found, " ")
}

// message implements the functions that only print.
func message(*expander, string, int) (string, error) { return "", nil }

func ifFunction(e *expander, text string, depth int) (string, error) {
	parts := splitArguments(text, 3)
	condition, err := e.expand(strings.TrimSpace(parts[0]), depth)
	if err != nil {
		return "", err
	}
	switch {
	case condition != "" && len(parts) > 1:
		return e.expand(parts[1], depth)
	case condition == "" && len(parts) > 2:
		return e.expand(parts[2], depth)
	}
	return "", nil
}

func or(e *expander, text string, depth int) (string, error) {
	for _, part := range splitArguments(text, len(text)+1) {
		value, err := e.expand(strings.TrimSpace(part), depth)
		if err != nil || value != "" {
			return value, err
		}
	}
	return "", nil
}

func and(e *expander, text string, depth int) (value string, err error) {
	for _, part := range splitArguments(text, len(text)+1) {
		value, err = e.expand(strings.TrimSpace(part), depth)
		if err != nil || value == "" {
			return "", err
		}
	}
	return value, nil
}

func foreach(e *expander, text string, depth int) (string, error) {
	parts := splitArguments(text, 3)
	if len(parts) < 3 {
		return "", fmt.Errorf("$(foreach %s) has fewer than three arguments", text)
	}
	name, err := e.expand(strings.TrimSpace(parts[0]), depth)
	if err != nil {
		return "", err
	}
	list, err := e.expand(parts[1], depth)
	if err != nil {
		return "", err
	}
	var results []string
	for _, word := range strings.Fields(list) {
		value, err := e.with(map[string]string{name: word}).expand(parts[2], depth)
		if err != nil {
			return "", err
		}
		if e.work += len(value) + 1; e.work > maxLength {
			return "", fmt.Errorf("$(foreach %s) is too long", name)
		}
		results = append(results, value)
	}
	return strings.Join(results, " "), nil
}

// with returns an expander with more local variables. The work of the new expander is counted as
// work of e.
func (e *expander) with(local map[string]string) *expander {
	inner := &expander{file: e.file, rule: e.rule, local: map[string]string{}, work: e.work}
	for _, from := range []map[string]string{e.local, local} {
		for name, value := range from {
			inner.local[name] = value
		}
	}
	return inner
}

func call(e *expander, text string, depth int) (string, error) {
	local := map[string]string{}
	for i, part := range splitArguments(text, len(text)+1) {
		value, err := e.expand(part, depth)
		if err != nil {
			return "", err
		}
		local[strconv.Itoa(i)] = value
	}
	inner := e.with(local)
	value, err := inner.variable(strings.TrimSpace(local["0"]), depth)
	e.work = inner.work
	return value, err
}

// shell evaluates the few commands that controller-gen's arguments need in practice. It starts no
// command, because a Makefile may contain any command.
func shell(e *expander, text string, depth int) (string, error) {
	command, err := e.expand(text, depth)
	if err != nil {
		return "", err
	}
	switch words := strings.Fields(strings.NewReplacer(`"`, "", `'`, "").Replace(command)); strings.Join(words, " ") {
	case "pwd":
		return e.file.Dir, nil
	case "date +%Y":
		return time.Now().Format("2006"), nil
	case "date -u +%Y":
		return time.Now().UTC().Format("2006"), nil
	case "git rev-parse --show-toplevel":
		return topLevel(e.file.Dir)
	default:
		if len(words) == 2 && words[0] == "dirname" {
			return filepath.Dir(words[1]), nil
		}
	}
	return "", fmt.Errorf("koboshi does not run $(shell %s)", strings.TrimSpace(text))
}

// topLevel returns the folder of the git repository.
func topLevel(dir string) (string, error) {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in a git repository", dir)
		}
	}
}
