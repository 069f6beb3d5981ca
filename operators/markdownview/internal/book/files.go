package book

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// reader collects the results of Read.
type reader struct {
	book *Book
	// refs holds the links of each page, keyed by the path of the page.
	refs map[string][]reference
	// anchors holds the fragments of each page, keyed by the path of the page.
	anchors map[string]map[string]bool
	// summaryTitle is the heading of SUMMARY.md.
	summaryTitle string
}

// index finds files by path.
type index struct {
	page  map[string]int // the position in Pages
	asset map[string]bool
	// dir holds the directories that contain files; the root is "".
	dir map[string]bool
	// home maps a directory to the position of its index in Pages, if it has an index.
	home map[string]int
}

// IsPage reports whether a path is the path of a page.
func IsPage(path string) bool {
	return strings.HasSuffix(path, ".md") && path != SummaryPath
}

// isIndex reports whether a page is served as the index of its directory. Like mdBook, isIndex
// ignores the case of README, but accepts index only in lower case.
func isIndex(p string) bool {
	name := path.Base(p)
	return IsPage(p) && (name == "index.md" || strings.EqualFold(name, "README.md"))
}

// URL returns the address of a file, relative to the root of the site: the page
// guide/install.md is at guide/install.html, an index at its directory, and everything
// else at its own path. The home page is also served at "".
func URL(p string) string {
	switch {
	case isIndex(p):
		return strings.TrimSuffix(p, path.Base(p))
	case IsPage(p):
		return strings.TrimSuffix(p, ".md") + ".html"
	}
	return p
}

// dirOf returns the directory of a path; "" is the root.
func dirOf(p string) string {
	if d := path.Dir(p); d != "." {
		return d
	}
	return ""
}

var byteOrderMark = []byte("\uFEFF")

// sort separates pages from assets, both ordered by path, and returns SUMMARY.md if it
// exists.
func (r *reader) sort(files []File) (summary []byte) {
	newest := make(map[string][]byte, len(files))
	for _, f := range files {
		newest[f.Path] = f.Data
	}
	r.refs, r.anchors = map[string][]reference{}, map[string]map[string]bool{}
	for p, data := range newest {
		switch {
		case p == SummaryPath:
			summary = r.text(p, data)
			if summary == nil {
				summary = []byte{}
			}
		case IsPage(p):
			r.book.Pages = append(r.book.Pages, r.page(p, r.text(p, data)))
		default:
			r.book.Assets = append(r.book.Assets, File{Path: p, Data: data})
		}
	}
	slices.SortFunc(r.book.Pages, func(a, b Page) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(r.book.Assets, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	r.index()
	return summary
}

// text decodes the data as text.
func (r *reader) text(path string, data []byte) []byte {
	data = bytes.TrimPrefix(data, byteOrderMark)
	valid := bytes.ToValidUTF8(data, []byte("\uFFFD"))
	if len(valid) != len(data) || !bytes.Equal(valid, data) {
		same := 0
		for same < len(data) && same < len(valid) && data[same] == valid[same] {
			same++
		}
		r.warn(path, bytes.Count(data[:same], []byte("\n"))+1, "is not UTF-8 here; save the file as UTF-8")
	}
	return valid
}

func (r *reader) index() {
	b := r.book
	b.paths = index{page: make(map[string]int, len(b.Pages)), asset: make(map[string]bool, len(b.Assets)), dir: map[string]bool{"": true}, home: map[string]int{}}
	mark := func(p string) {
		for d := dirOf(p); d != "" && !b.paths.dir[d]; d = dirOf(d) {
			b.paths.dir[d] = true
		}
	}
	for n, p := range b.Pages {
		b.paths.page[p.Path] = n
		if isIndex(p.Path) {
			b.paths.home[dirOf(p.Path)] = n
		}
		mark(p.Path)
	}
	for _, f := range b.Assets {
		b.paths.asset[f.Path] = true
		mark(f.Path)
	}
}

// collisions reports files that cannot be served together.
func (r *reader) collisions() {
	at := map[string]string{}
	each := func(p string) {
		if r.book.paths.dir[p] {
			r.fatal(p, 0, "is the name of a file and of a directory with other files; rename one of them")
		}
		url := URL(p)
		if first, taken := at[url]; taken {
			r.fatal(p, 0, fmt.Sprintf("would be served at /%s, the address of %s; rename one of them", url, quoted(first)))
			return
		}
		at[url] = p
	}
	for _, p := range r.book.Pages {
		each(p.Path)
	}
	for _, f := range r.book.Assets {
		each(f.Path)
	}
}

func (r *reader) fatal(path string, line int, message string) {
	r.book.Problems = append(r.book.Problems, Problem{Path: path, Line: line, Message: message, Fatal: true})
}

func (r *reader) warn(path string, line int, message string) {
	r.book.Problems = append(r.book.Problems, Problem{Path: path, Line: line, Message: message})
}

func (r *reader) sortProblems() {
	place := map[string]int{SummaryPath: -1}
	for n, f := range r.book.Assets {
		place[f.Path] = len(r.book.Pages) + n
	}
	for n, p := range r.book.Pages {
		place[p.Path] = n
	}
	slices.SortStableFunc(r.book.Problems, func(a, b Problem) int {
		return cmp.Or(place[a.Path]-place[b.Path], a.Line-b.Line)
	})
}

// quoted shortens an author's text so that it fits into a message.
func quoted(s string) string {
	const most = 120
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s)
	runes := 0
	for i := range s {
		if runes++; runes > most {
			return s[:i] + "…"
		}
	}
	return s
}
