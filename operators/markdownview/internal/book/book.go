package book

// SummaryPath is the file that orders the navigation.
const SummaryPath = "SUMMARY.md"

// File is one file of a site.
type File struct {
	// Path is relative to the root of the site. Its parts are separated by slashes.
	Path string
	Data []byte
}

// Book holds the pages of a site.
type Book struct {
	// Title is the heading of SUMMARY.md, or by default the title of the home page; it is empty if
	// neither exists.
	Title string
	// Nav is the navigation, in reading order.
	Nav []Entry
	// Pages are the Markdown files in reading order: first the pages in Nav, then the
	// others, sorted by path. Pages does not contain SUMMARY.md.
	Pages []Page
	// Assets are all other files, sorted by path.
	Assets []File
	// Problems are ordered by file and line. The problems in SUMMARY.md come first, then the
	// problems in pages, then the problems in assets.
	Problems []Problem
	// HasSummary reports whether Nav is made from SUMMARY.md.
	HasSummary bool
	// Home is the path of the page that is also served at the root: README.md or index.md
	// in the root directory, or by default the first page.
	Home string

	paths index
}

// Entry is a line of the navigation.
type Entry struct {
	Title string
	// Path is the path of the page; empty for a draft or a heading.
	Path string
	// Number is the number of a numbered chapter: 1.2 is {1, 2}.
	Number []int
	// Part reports whether this entry is a part title.
	Part bool
	// Separator reports whether this entry is a line between other entries.
	Separator bool
	Children  []Entry
	// Line is the line in SUMMARY.md; 0 if there is no SUMMARY.md.
	Line int
}

// Page is a Markdown file.
type Page struct {
	Path string
	// Title is the first heading of level 1, or by default the first heading of any level.
	// Without headings, Title is derived from the name of the file.
	Title string
	// Source is UTF-8 without a byte order mark. Line numbers refer to it.
	Source   []byte
	Headings []Heading
}

// Heading is a heading of a page.
type Heading struct {
	// ID is the URL fragment of the heading.
	ID string
	// Text is the text of the heading, without markup.
	Text  string
	Level int
	Line  int
}

// Problem is a mistake in a file.
type Problem struct {
	Path string
	// Line counts from 1; 0 stands for the complete file.
	Line int
	// Message explains the problem to a person, in at most a few hundred bytes.
	Message string
	// Fatal reports whether the problem makes the book unusable. Other problems only
	// inconvenience readers.
	Fatal bool
	// Missing is the path of a file that a link needs but that is not among the files.
	// The caller may know that the file exists elsewhere.
	Missing string
	// MdBook reports whether the problem occurs only if mdBook serves the book. If the
	// viewer serves the book, readers do not notice the problem.
	MdBook bool
}

// Read makes a book from files. Instead of failing, Read lists all mistakes in Problems. If several
// files have the same path, the last one is used.
func Read(files []File) *Book {
	b := &Book{}
	r := &reader{book: b}
	summary := r.sort(files)
	r.collisions()
	if summary != nil {
		b.HasSummary = true
		r.summary(summary)
	} else {
		b.Nav = tree(b.Pages)
	}
	r.order()
	r.home()
	r.title()
	r.check()
	r.sortProblems()
	return b
}

// Fatal returns the book's fatal problems.
func (b *Book) Fatal() []Problem {
	var fatal []Problem
	for _, p := range b.Problems {
		if p.Fatal {
			fatal = append(fatal, p)
		}
	}
	return fatal
}

// Page returns the page at a path, or nil.
func (b *Book) Page(path string) *Page {
	if n, ok := b.paths.page[path]; ok {
		return &b.Pages[n]
	}
	return nil
}
