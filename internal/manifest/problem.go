package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/loader"

	"github.com/koboshi-dev/koboshi/internal/spelling"
)

// A Position is a line in a file of the project.
type Position struct {
	File string `json:"file,omitempty"` // relative to the project's folder, with slashes
	Line int    `json:"line,omitempty"`
}

// A Problem is a mistake in a project. If there is one, nothing is generated.
type Problem struct {
	Position

	Column int `json:"column,omitempty"`
	// Marker is the marker as it is written, without its arguments.
	Marker  string `json:"marker,omitempty"`
	Message string `json:"message"`
	// Suggestion is the text that was probably meant.
	Suggestion string `json:"suggestion,omitempty"`
}

// String returns the problem in the format that editors understand.
func (p Problem) String() string {
	var out strings.Builder
	out.WriteString(p.File)
	for _, n := range []int{p.Line, p.Column} {
		if n > 0 {
			_, _ = fmt.Fprintf(&out, ":%d", n)
		}
	}
	if p.File != "" {
		out.WriteString(": ")
	}
	out.WriteString(p.Message)
	if p.Suggestion != "" {
		_, _ = fmt.Fprintf(&out, "; did you mean %s?", p.Suggestion)
	}
	return out.String()
}

// sortProblems orders problems by position, and removes repetitions.
func sortProblems(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.Compact(problems)
}

// packageErrors returns the errors of packages and of everything that they import. The type
// checker's errors are left out, because the generators check only the types that they need,
// so that other types seem to be missing.
func (g *generation) packageErrors(roots []*loader.Package) (problems []Problem) {
	raw := make([]*packages.Package, len(roots))
	for i, root := range roots {
		raw[i] = root.Package
	}
	packages.Visit(raw, nil, func(pkg *packages.Package) {
		for _, err := range pkg.Errors {
			if err.Kind != packages.TypeError {
				problems = append(problems, g.problem(err))
			}
		}
	})
	return problems
}

// position matches the position of an error in a package.
var position = regexp.MustCompile(`^(.*?)(?::(\d+))?(?::(\d+))?$`)

func (g *generation) problem(err packages.Error) Problem {
	p := Problem{Message: oneLine(err.Msg)}
	if id, ok := strings.CutSuffix(err.Pos, ":-"); ok {
		p.Message = fmt.Sprintf("package %s: %s", id, p.Message)
		return p
	}
	match := position.FindStringSubmatch(err.Pos)
	if match == nil || match[1] == "" || match[1] == "-" {
		return p
	}
	p.File = g.relative(match[1])
	p.Line, _ = strconv.Atoi(match[2])
	p.Column, _ = strconv.Atoi(match[3])
	return p
}

// relative returns the path relative to the project's folder, if it is not far outside.
func (g *generation) relative(path string) string {
	if !filepath.IsAbs(path) {
		return filepath.ToSlash(path)
	}
	name, err := filepath.Rel(g.dir, path)
	if err != nil || strings.HasPrefix(name, filepath.Join("..", "..", "..")) {
		return path
	}
	return filepath.ToSlash(name)
}

// oneLine joins the lines of a message.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// scannerPosition matches the position in the arguments of a marker, which differs from the
// position in the file.
var scannerPosition = regexp.MustCompile(` \(at [^()]*\)`)

// plainError returns the text of an error of controller-tools' parser.
func plainError(err error) string {
	var list loader.ErrList
	if errors.As(err, &list) && len(list) > 0 {
		err = list[0] // the others follow from the first
	}
	return scannerPosition.ReplaceAllString(oneLine(err.Error()), "")
}

// nearest returns the name that was probably meant, or an empty string. If two names are equally
// similar, it prefers the one that begins in the same way.
func nearest(name string, names []string) (best string) {
	limit := min(max(2, len(name)/5), 4)
	for _, candidate := range slices.Sorted(slices.Values(names)) {
		if strings.EqualFold(name, candidate) {
			return candidate
		}
		distance := spelling.Distance(name, candidate)
		if distance < limit || distance == limit && (best == "" || sameStart(name, candidate) > sameStart(name, best)) {
			best, limit = candidate, distance
		}
	}
	return best
}

// sameStart returns the length of the common beginning of two names.
func sameStart(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
