package book

import (
	"fmt"
	"strings"
)

// longest is the maximum length, in bytes, of a link that is checked. Many links can use
// the same reference definition, so the cost of each use must be limited.
const longest = 1024

// check checks the links of all pages.
func (r *reader) check() {
	for i := range r.book.Pages {
		p := r.book.Pages[i].Path
		for _, ref := range r.refs[p] {
			r.follow(p, ref)
		}
	}
}

func (r *reader) follow(from string, ref reference) {
	if len(ref.to) > longest {
		if !hasScheme(ref.to[:longest]) {
			r.warn(from, ref.line, fmt.Sprintf("the link to %s is longer than %d bytes", quoted(ref.to[:longest]), longest))
		}
		return
	}
	target, fragment, local := Resolve(from, ref.to)
	if !local {
		return
	}
	kind := "link"
	if ref.image {
		kind = "image"
	}
	if outside(target) {
		r.warn(from, ref.line, fmt.Sprintf("%s %s leads outside the site", kind, quoted(ref.to)))
		return
	}
	path, ok := r.book.Find(target)
	switch {
	case !ok && target == SummaryPath && r.book.HasSummary:
		r.warn(from, ref.line, fmt.Sprintf("%s %s leads to SUMMARY.md, which is not a page", kind, quoted(ref.to)))
	case !ok:
		r.missing(from, ref, kind, target)
	case strings.HasSuffix(path, "/"):
		r.book.Problems = append(r.book.Problems, Problem{
			Path: from, Line: ref.line, Missing: path + "README.md",
			Message: fmt.Sprintf("%s %s leads to a directory without README.md or index.md", kind, quoted(ref.to)),
		})
	case fragment != "" && !r.hasAnchor(path, fragment):
		in := path
		if path == from {
			in = "this page"
		}
		r.warn(from, ref.line, fmt.Sprintf("%s %s leads to #%s, which %s does not have", kind, quoted(ref.to), quoted(fragment), quoted(in)))
	}
}

func (r *reader) missing(from string, ref reference, kind, target string) {
	message := fmt.Sprintf("%s %s leads to %s, which does not exist", kind, quoted(ref.to), quoted(target))
	if quoted(ref.to) == quoted(target) {
		message = fmt.Sprintf("%s %s leads to a missing file", kind, quoted(ref.to))
	}
	r.book.Problems = append(r.book.Problems, Problem{Path: from, Line: ref.line, Message: message, Missing: target})
}

// hasAnchor reports whether a fragment exists in a file. Fragments of assets are not
// checked.
func (r *reader) hasAnchor(path, fragment string) bool {
	anchors, isPage := r.anchors[path]
	return !isPage || anchors[fragment] ||
		strings.EqualFold(fragment, "top") || strings.HasPrefix(fragment, ":~:") || // defined by browsers
		strings.HasPrefix(fragment, "fn:") || strings.HasPrefix(fragment, "fnref:") // generated for footnotes
}

func outside(target string) bool {
	return target == ".." || strings.HasPrefix(target, "../")
}
