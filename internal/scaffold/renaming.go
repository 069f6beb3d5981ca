package scaffold

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

// A renaming replaces the name of a kind in texts and in identifiers.
type renaming struct {
	names [][2]string // the old and the new forms of the name
	keep  []string    // names that contain the old one, but have another meaning
}

func renamingOf(f *projectfile.File, from, to projectfile.Resource) renaming {
	r := renaming{names: [][2]string{
		{from.PluralName(), to.PluralName()},
		{strings.ToLower(from.Kind), strings.ToLower(to.Kind)},
		{from.Kind, to.Kind},
		{lowerFirst(from.Kind), lowerFirst(to.Kind)},
	}}
	others := []string{f.Repo, f.ProjectName, from.QualifiedGroup()}
	for _, other := range f.Resources {
		others = append(others, other.Kind, strings.ToLower(other.Kind), lowerFirst(other.Kind), other.PluralName())
	}
	for _, other := range others {
		same := slices.ContainsFunc(r.names, func(name [2]string) bool { return name[0] == other })
		if !same && strings.Contains(strings.ToLower(other), strings.ToLower(from.Kind)) {
			r.keep = append(r.keep, other)
		}
	}
	return r
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// replace returns the text with the new name wherever the old one is a word, or a part of an
// identifier, as in ShipReconciler or errShipStale.
func (r renaming) replace(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		old, name := r.at(text, i)
		if old == "" {
			old, name = text[i:i+1], text[i:i+1]
		}
		out.WriteString(name)
		i += len(old)
	}
	return out.String()
}

// at returns the name at an offset, and its replacement. Both are empty if there is none.
func (r renaming) at(text string, i int) (old, name string) {
	for _, keep := range r.keep {
		if strings.HasPrefix(text[i:], keep) {
			return keep, keep
		}
	}
	for _, pair := range r.names {
		if len(pair[0]) > len(old) && strings.HasPrefix(text[i:], pair[0]) && isWord(text, i, pair[0]) {
			old, name = pair[0], pair[1]
		}
	}
	return old, name
}

// isWord reports whether the name at an offset is not merely a part of a longer word.
func isWord(text string, i int, name string) bool {
	before, after := text[:i], text[i+len(name):]
	if unicode.IsUpper(rune(name[0])) {
		return !continues(after) || plural(after)
	}
	// The names of webhooks are the kind with the letter v or m before it.
	if n := len(before); n > 0 && (before[n-1] == 'v' || before[n-1] == 'm') && strings.HasPrefix(after, "-v") {
		before = before[:n-1]
	}
	last, _ := utf8.DecodeLastRuneInString(before)
	return !unicode.IsLetter(last) && !unicode.IsDigit(last) && !continues(after)
}

// plural reports whether the text begins with the s of a plural, as in countShips.
func plural(after string) bool {
	return strings.HasPrefix(after, "s") && !continues(after[1:])
}

// continues reports whether the text continues the word that ends before it.
func continues(text string) bool {
	next, _ := utf8.DecodeRuneInString(text)
	return unicode.IsLower(next) || unicode.IsDigit(next)
}
