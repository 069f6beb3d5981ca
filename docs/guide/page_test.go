package guide

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// page is a parsed page. The page is parsed with a few regular expressions instead of a Markdown
// library; the book uses only the syntax that they understand.
type page struct {
	path    string
	anchors map[string]bool
	links   []link
	blocks  []block
}

type link struct {
	line   int
	target string
}

// block is a fenced block of code.
type block struct {
	line     int // number of its first line of code
	language string
	file     string // path of the file that contains this code, or empty
	text     string
}

var (
	fence      = regexp.MustCompile("^ {0,3}```([a-z]*)(?: file=([^ ]+))?$")
	heading    = regexp.MustCompile(`^#{1,6} +(.+?)$`)
	codeSpan   = regexp.MustCompile("`[^`]*`")
	inlineLink = regexp.MustCompile(`\]\(([^()\s]*)\)`)
	linkText   = regexp.MustCompile(`!?\[([^\]]*)\]\([^()]*\)`)
)

func readPage(t *testing.T, name string) page {
	t.Helper()
	return readPageIn(t, Files, name)
}

func readPageIn(t *testing.T, folder fs.FS, name string) page {
	t.Helper()
	data, err := fs.ReadFile(folder, name)
	if err != nil {
		t.Fatal(err)
	}
	p := page{path: name, anchors: map[string]bool{}}
	var open *block
	for i, line := range strings.Split(string(data), "\n") {
		number := i + 1
		switch mark := fence.FindStringSubmatch(line); {
		case mark != nil && open == nil:
			open = &block{line: number + 1, language: mark[1], file: mark[2]}
		case mark != nil && mark[1] == "":
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		default:
			p.prose(number, line)
		}
	}
	if open != nil {
		t.Errorf("%s:%d: this block of code does not end", name, open.line-1)
	}
	return p
}

func (p *page) prose(number int, line string) {
	if h := heading.FindStringSubmatch(line); h != nil {
		p.anchors[p.anchor(h[1])] = true
	}
	for _, found := range inlineLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
		p.links = append(p.links, link{line: number, target: found[1]})
	}
}

// anchor returns the ID that GitHub gives a heading with this text. anchor gives two headings with
// the same text the same ID, but no page of the book has two such headings.
func (p *page) anchor(text string) string {
	text = linkText.ReplaceAllString(text, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsNumber(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

func readPages(t *testing.T) map[string]page {
	t.Helper()
	pages := map[string]page{}
	for name := range files(t) {
		if path.Ext(name) == ".md" {
			pages[name] = readPage(t, name)
		}
	}
	return pages
}

// files returns all files of the book with their sizes.
func files(t *testing.T) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	err := fs.WalkDir(Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		all[name] = info.Size()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
