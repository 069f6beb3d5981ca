package site

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
)

// Base returns the path below which the site is served, with a slash at the end.
func (s *Site) Base() string { return s.base }

// NotFound returns the response for unknown addresses.
func (s *Site) NotFound() *Resource { return s.notFound }

// Find returns the resource at the path of a decoded URL, or nil.
func (s *Site) Find(urlPath string) *Resource {
	if r, ok := s.resources[urlPath]; ok {
		return r
	}
	own, ok := strings.CutPrefix(urlPath, s.base+ownPrefix)
	if !ok {
		return nil
	}
	stem, rest, _ := strings.Cut(own, ".")
	_, ext, _ := strings.Cut(rest, ".")
	return s.outdated[stem+"."+ext]
}

// Redirect returns the escaped target of the redirect for a path without a resource.
func (s *Site) Redirect(urlPath string) (to string, ok bool) {
	if to, ok = s.redirects[urlPath]; ok {
		return to, true
	}
	if urlPath+"/" == s.base {
		return s.base, true
	}
	return "", false
}

// addRedirects redirects alternative spellings of an address: the file of a page, a page
// without its extension, a directory without its slash.
func (s *Site) addRedirects() {
	lead := func(from, to string) {
		if _, taken := s.resources[s.base+from]; !taken {
			if _, taken := s.redirects[s.base+from]; !taken {
				s.redirects[s.base+from] = address(s.base, to)
			}
		}
	}
	for _, p := range s.Book.Pages {
		url := book.URL(p.Path)
		lead(p.Path, url)
		if dir, isDir := strings.CutSuffix(url, "/"); isDir || url == "" {
			lead(path.Join(dir, "index.html"), url)
			lead(dir, url)
		} else {
			lead(strings.TrimSuffix(url, ".html"), url)
		}
	}
	lead("favicon.ico", ownPrefix+path.Base(s.frame.own["icon.svg"]))
}

// SearchPath returns the path of the search page.
func (s *Site) SearchPath() string { return s.base + "search" }

// longestQuery is the maximum length of a query, in bytes. The rest is ignored.
const longestQuery = 500

// Search returns the page with the results of a query.
func (s *Site) Search(query string) (*Resource, error) {
	if len(query) > longestQuery {
		query = query[:longestQuery]
	}
	query = strings.TrimSpace(strings.ToValidUTF8(query, ""))
	l := &leaf{Title: s.frame.Words.Search, Query: query, Searched: true, Results: s.index.search(terms(query))}
	k := kind{status: http.StatusOK, contentType: pageKind.contentType, policy: pagePolicy, cache: revalidate}
	r, err := s.leaf(newPlainComposer(), k, l)
	if err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	return r, nil
}
