package book

import (
	"net/url"
	"path"
	"strings"
)

// Resolve returns the target of a link in a page. A link with a scheme or a host leaves the
// site, and is not local. The target is the path of a file, or the path of a directory with
// a trailing slash; "" is the root. For a link with only a fragment or a query, the target
// is the path of the page itself. A link that starts with a slash is relative to the root
// of the site. A target that begins with "../" is outside the site.
func Resolve(fromPage, link string) (targetPath, fragment string, local bool) {
	link = strings.TrimSpace(link)
	if hasScheme(link) || strings.HasPrefix(link, "//") {
		return "", "", false
	}
	link, fragment, _ = strings.Cut(link, "#")
	link, _, _ = strings.Cut(link, "?")
	fragment, link = decoded(fragment), decoded(link)
	if link == "" {
		return fromPage, fragment, true
	}
	last := link[strings.LastIndexByte(link, '/')+1:]
	isDir := last == "" || last == "." || last == ".."
	if strings.HasPrefix(link, "/") {
		link = strings.TrimPrefix(path.Clean(link), "/")
	} else {
		link = path.Join(dirOf(fromPage), link)
	}
	switch {
	case link == "" || link == ".":
		return "", fragment, true
	case isDir:
		return link + "/", fragment, true
	}
	return link, fragment, true
}

// Find returns the file for a target that Resolve returned: the file itself, the index of a
// directory, or the page that is served at this address. For a directory without an index, Find
// returns the directory, with a trailing slash.
func (b *Book) Find(target string) (path string, ok bool) {
	if _, isPage := b.paths.page[target]; isPage || b.paths.asset[target] {
		return target, true
	}
	if stem, isHTML := strings.CutSuffix(target, ".html"); isHTML {
		if _, isPage := b.paths.page[stem+".md"]; isPage {
			return stem + ".md", true
		}
		if dir, isIndex := strings.CutSuffix(target, "index.html"); isIndex && (dir == "" || strings.HasSuffix(dir, "/")) {
			if found, ok := b.Find(dir); ok && !strings.HasSuffix(found, "/") && found != "" {
				return found, true
			}
		}
		return "", false
	}
	dir := strings.TrimSuffix(target, "/")
	if !b.paths.dir[dir] {
		return "", false
	}
	if n, ok := b.paths.home[dir]; ok {
		return b.Pages[n].Path, true
	}
	if dir == "" {
		return b.Home, b.Home != ""
	}
	return dir + "/", true
}

func decoded(s string) string {
	if d, err := url.PathUnescape(s); err == nil {
		return d
	}
	return s // browsers keep a stray %, too
}

// hasScheme reports whether a link begins with a scheme, as in mailto:.
func hasScheme(link string) bool {
	for i := range len(link) {
		switch c := link[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return i > 0 && c == ':'
		}
	}
	return false
}
