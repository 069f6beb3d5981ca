package site

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
)

//go:embed theme
var theme embed.FS

// ownPrefix is the directory of the site's own files, below the base path.
const ownPrefix = "_/"

// frame surrounds the text of all pages.
type frame struct {
	templates *template.Template
	Base      string
	Site      string
	Theme     Theme
	Language  string
	Words     words
	// own maps the names of the theme files and of the search index to their addresses.
	own  map[string]string
	Icon string
}

// leaf is the content of a frame.
type leaf struct {
	*frame
	Title       string
	Trail       []link
	Headings    []book.Heading
	Prev, Next  *link
	Problem     string
	Query       string
	Searched    bool
	AddTitle    bool
	NotFound    bool
	Results     []result
	HTML        template.HTML
	WholeTitle  string
	SearchIndex string
}

type link struct{ Title, URL string }

// address returns the escaped address of a path in the site.
func address(base, path string) string {
	return (&url.URL{Path: base + path}).EscapedPath()
}

// Own returns the address of a theme file.
func (f *frame) Own(name string) string { return f.own[name] }

// Address returns the address of a search result.
func (f *frame) Address(found string) string {
	path, fragment, _ := strings.Cut(found, "#")
	return (&url.URL{Path: f.Base + path, Fragment: fragment}).String()
}

func newFrame(o Options, title string) (*frame, error) {
	f := &frame{
		Base: o.BasePath, Site: title, Theme: o.Theme, Language: o.Language,
		Words: wordsOf(o.Language), own: map[string]string{},
	}
	var err error
	f.templates, err = template.New("").Funcs(template.FuncMap{
		"odd": func(i int) bool { return i%2 == 1 },
	}).ParseFS(theme, "theme/*.html")
	if err != nil {
		return nil, fmt.Errorf("reading the page templates: %w", err)
	}
	return f, nil
}

// themeKinds holds the kinds of the theme files that browsers request.
var themeKinds = map[string]kind{
	"style.css": {status: http.StatusOK, contentType: "text/css; charset=utf-8", policy: pagePolicy, cache: forever, compressible: true},
	"site.js":   {status: http.StatusOK, contentType: "text/javascript; charset=utf-8", policy: pagePolicy, cache: forever, compressible: true},
	"first.js":  {status: http.StatusOK, contentType: "text/javascript; charset=utf-8", policy: pagePolicy, cache: forever, compressible: true},
	"icon.svg":  {status: http.StatusOK, contentType: "image/svg+xml", policy: assetPolicy, cache: forever, compressible: true},
}

var indexKind = kind{status: http.StatusOK, contentType: "application/json", policy: pagePolicy, cache: forever, compressible: true}

// addOwn adds one of the site's own files, at an address that contains the hash of the
// file. A page that was loaded before the file changed still requests the address with the
// old hash, and gets the current file.
func (s *Site) addOwn(f *frame, c *composer, k kind, name string, data []byte) {
	sum := sha256.Sum256(data)
	stem, ext, _ := strings.Cut(name, ".")
	path := ownPrefix + stem + "." + hex.EncodeToString(sum[:6]) + "." + ext
	f.own[name] = address(s.base, path)
	r := c.resource(k, part{own: data})
	s.resources[s.base+path] = r
	k.cache = revalidate
	s.outdated[name] = r.as(k)
}

// before and after return the HTML around the navigation and the text of a page.
func (f *frame) before(l *leaf) ([]byte, error) { return f.execute("before.html", l) }
func (f *frame) after(l *leaf) ([]byte, error)  { return f.execute("after.html", l) }

func (f *frame) execute(name string, l *leaf) ([]byte, error) {
	l.frame = f
	l.WholeTitle = l.Title
	if l.Title != f.Site && f.Site != "" {
		l.WholeTitle = l.Title + " · " + f.Site
	}
	l.SearchIndex = f.own["search.json"]
	var out bytes.Buffer
	if err := f.templates.ExecuteTemplate(&out, name, l); err != nil {
		return nil, fmt.Errorf("writing the page %q: %w", l.Title, err)
	}
	return out.Bytes(), nil
}
