// Package site builds a documentation site from files. The package renders and compresses
// everything, and computes all headers, before the first request. A Site never changes; if files
// change, a new Site is built.
package site

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/render"
)

// Theme is the color scheme for readers who have not chosen one.
type Theme string

// Values of Theme.
const (
	ThemeAuto  Theme = "auto"
	ThemeLight Theme = "light"
	ThemeDark  Theme = "dark"
)

// Options hold the settings of a site that do not come from its files.
type Options struct {
	// Title is the title of the site; empty means the title of the book.
	Title string
	// Language is the BCP 47 tag that pages declare, and that selects the language of the
	// site's own texts; empty means en.
	Language string
	// Theme is the default color scheme; empty means auto.
	Theme Theme
	// BasePath is the path below which the site is served, such as /handbook/; empty means
	// "/".
	BasePath string
}

// ErrNoPages reports that there is nothing to serve.
var ErrNoPages = errors.New("there is no page (no file that ends in .md)")

// Site is one version of a documentation site.
type Site struct {
	// Book is the book from which the site was built. To save memory, the Source of each
	// page is nil.
	Book *book.Book
	// Failed holds the errors of pages that could not be rendered, and that show their
	// source instead.
	Failed []error

	base      string
	resources map[string]*Resource
	// outdated maps the name of each of the site's own files to the response for addresses
	// with an outdated hash. These responses have the current content.
	outdated  map[string]*Resource
	redirects map[string]string
	notFound  *Resource
	frame     *frame
	nav       *navigation
	index     *index
}

var basePath = regexp.MustCompile(`^/([A-Za-z0-9._~-]+/)*$`)

var languageTag = regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$`)

// Complete checks the options, sets defaults and normalizes paths.
func (o Options) Complete() (Options, error) {
	o.BasePath = strings.TrimSuffix(o.BasePath, "/") + "/"
	if !basePath.MatchString(o.BasePath) || strings.Contains(o.BasePath, "/./") || strings.Contains(o.BasePath, "/../") {
		return o, fmt.Errorf("base path %q: it must look like /handbook/, and have only letters, digits and . _ ~ -", o.BasePath)
	}
	if o.Language = cmp.Or(o.Language, "en"); len(o.Language) > 35 || !languageTag.MatchString(o.Language) {
		return o, fmt.Errorf("language %q: it must be a BCP 47 tag such as en, ja or pt-BR", o.Language)
	}
	switch o.Theme = cmp.Or(o.Theme, ThemeAuto); o.Theme {
	case ThemeAuto, ThemeLight, ThemeDark:
	default:
		return o, fmt.Errorf("theme %q: it must be auto, light or dark", o.Theme)
	}
	return o, nil
}

// Build makes a site from files. A page that cannot be rendered is not an error: it is
// served with a note and its source, and is listed in Failed.
func Build(files []book.File, o Options) (*Site, error) {
	o, err := o.Complete()
	if err != nil {
		return nil, err
	}
	b := book.Read(files)
	if len(b.Pages) == 0 {
		return nil, ErrNoPages
	}
	f, err := newFrame(o, cmp.Or(o.Title, b.Title))
	if err != nil {
		return nil, err
	}
	s := &Site{
		Book: b, base: o.BasePath, frame: f,
		resources: map[string]*Resource{}, outdated: map[string]*Resource{}, redirects: map[string]string{},
	}
	c := newComposer()
	s.addAssets(c)
	if err := s.addTheme(c); err != nil {
		return nil, err
	}
	s.nav = newNavigation(b, s.base, c)
	if err := s.addPages(c); err != nil {
		return nil, err
	}
	for i := range b.Pages {
		b.Pages[i].Source = nil // the text is in the resources now
	}
	for i := range b.Assets {
		b.Assets[i].Data = nil
	}
	s.addRedirects()
	return s, nil
}

func (s *Site) addTheme(c *composer) error {
	for name, k := range themeKinds {
		data, err := theme.ReadFile("theme/" + name)
		if err != nil {
			return fmt.Errorf("reading the theme: %w", err)
		}
		s.addOwn(s.frame, c, k, name, data)
	}
	s.frame.Icon = s.frame.own["icon.svg"]
	for _, own := range []string{"favicon.svg", "favicon.png", "favicon.ico"} {
		if _, ok := s.resources[s.base+own]; ok {
			s.frame.Icon = address(s.base, own)
			break
		}
	}
	return nil
}

func (s *Site) addAssets(c *composer) {
	for _, a := range s.Book.Assets {
		s.resources[s.base+a.Path] = c.resource(assetKind(a.Path), part{own: a.Data})
	}
}

// addPages renders all pages before it frames them, because the frame contains the address
// of the search index, which contains the hash of all text.
func (s *Site) addPages(c *composer) error {
	pages := s.Book.Pages
	rendered, failed := s.render()
	texts := make([]indexed, len(pages))
	for i, p := range pages {
		texts[i] = indexed{URL: book.URL(p.Path), Title: p.Title, Sections: [][3]string{}}
		for _, t := range rendered[i].Sections {
			texts[i].Sections = append(texts[i].Sections, [3]string{t.ID, t.Heading, t.Text})
		}
	}
	s.index = newIndex(texts)
	s.addOwn(s.frame, c, indexKind, "search.json", s.index.json)

	framed := make([]*Resource, len(pages))
	err := eachPart(len(pages), func(i int, c *composer) error {
		var err error
		framed[i], err = s.page(c, i, rendered[i].HTML, failed[i])
		return err
	})
	if err != nil {
		return err
	}
	for i, p := range pages {
		s.resources[s.base+book.URL(p.Path)] = framed[i]
		if p.Path == s.Book.Home {
			s.resources[s.base] = framed[i]
		}
		if failed[i] != nil {
			s.Failed = append(s.Failed, failed[i])
		}
	}
	k := pageKind
	k.status = http.StatusNotFound
	s.notFound, err = s.leaf(c, k, &leaf{Title: s.frame.Words.NotFound, NotFound: true})
	return err
}

func (s *Site) render() ([]render.Page, []error) {
	pages := s.Book.Pages
	renderer := render.New(render.Options{Base: s.base})
	rendered, failed := make([]render.Page, len(pages)), make([]error, len(pages))
	// A page that cannot be rendered shows its source, and does not affect other pages.
	_ = eachPart(len(pages), func(i int, _ *composer) error {
		if rendered[i], failed[i] = renderer.Page(s.Book, &pages[i]); failed[i] != nil {
			rendered[i] = render.Source(&pages[i])
		}
		return nil
	})
	return rendered, failed
}

// eachPart calls f for 0 to n-1 in parallel. Each goroutine has its own composer.
func eachPart(n int, f func(i int, c *composer) error) error {
	var group errgroup.Group
	workers := min(n, runtime.GOMAXPROCS(0))
	for w := range workers {
		group.Go(func() error {
			c := newComposer()
			for i := w; i < n; i += workers {
				if err := f(i, c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// page frames a page of the book.
func (s *Site) page(c *composer, i int, html []byte, failed error) (*Resource, error) {
	p := &s.Book.Pages[i]
	l := &leaf{Title: p.Title, AddTitle: len(p.Headings) == 0}
	for _, e := range s.nav.trail[p.Path] {
		up := link{Title: e.Title}
		if e.Path != "" {
			up.URL = address(s.base, book.URL(e.Path))
		}
		l.Trail = append(l.Trail, up)
	}
	for _, h := range p.Headings {
		if (h.Level == 2 || h.Level == 3) && h.ID != "" && h.Text != "" {
			l.Headings = append(l.Headings, h)
		}
	}
	l.Prev, l.Next = s.neighbour(i-1), s.neighbour(i+1)
	if failed != nil {
		l.Problem = failed.Error()
	}
	before, err := s.frame.before(l)
	if err != nil {
		return nil, err
	}
	text, err := s.frame.execute("text.html", l)
	if err != nil {
		return nil, err
	}
	after, err := s.frame.after(l)
	if err != nil {
		return nil, err
	}
	parts := append([]part{{own: before}}, s.nav.parts(p.Path)...)
	return c.resource(pageKind, append(parts, part{own: text}, part{own: html}, part{own: after})...), nil
}

func (s *Site) neighbour(i int) *link {
	if i < 0 || i >= len(s.Book.Pages) {
		return nil
	}
	p := &s.Book.Pages[i]
	return &link{Title: cmp.Or(s.nav.titles[p.Path], p.Title), URL: address(s.base, book.URL(p.Path))}
}

// leaf frames a page that does not come from the book.
func (s *Site) leaf(c *composer, k kind, l *leaf) (*Resource, error) {
	before, err := s.frame.before(l)
	if err != nil {
		return nil, err
	}
	text, err := s.frame.execute("text.html", l)
	if err != nil {
		return nil, err
	}
	after, err := s.frame.after(l)
	if err != nil {
		return nil, err
	}
	parts := append([]part{{own: before}}, s.nav.parts("")...)
	return c.resource(k, append(parts, part{own: text}, part{own: after})...), nil
}
