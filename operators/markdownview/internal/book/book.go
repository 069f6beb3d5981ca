package book

// SummaryPath is the file that orders the navigation.
const SummaryPath = "SUMMARY.md"

// File is one file of a site.
type File struct {
	// Path has slashes and is relative to the root of the site.
	Path string
	Data []byte
}

// Book holds the pages of a site.
type Book struct {
	// Title is the heading of SUMMARY.md or else the title of the first page;
	// empty without pages.
	Title string
	// Nav is the navigation, in reading order.
	Nav []Entry
	// Pages are the Markdown files in reading order: those of Nav, then the rest
	// by path. SUMMARY.md is none of them.
	Pages []Page
	// Assets are all other files, by path.
	Assets []File
	// Problems are ordered by file and line: those of SUMMARY.md, then those of Pages
	// and of Assets in their order.
	Problems []Problem
	// HasSummary reports whether Nav is made of SUMMARY.md.
	HasSummary bool
	// Home is the path of the page that is also served at the root: README.md or
	// index.md of the root, else the first page.
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
	// Part reports whether this is a part title.
	Part bool
	// Separator reports whether this is a line between entries.
	Separator bool
	Children  []Entry
	// Line in SUMMARY.md; 0 without one.
	Line int
}

// Page is a Markdown file.
type Page struct {
	Path string
	// Title is the first heading of level 1, else the first heading, else derived from
	// the file's name.
	Title string
	// Source is UTF-8 without a byte order mark; lines are counted in it.
	Source   []byte
	Headings []Heading
}

// Heading is a heading of a page.
type Heading struct {
	// ID is the fragment that leads to it.
	ID string
	// Text is without markup.
	Text  string
	Level int
	Line  int
}

// Problem is something wrong with a file.
type Problem struct {
	Path string
	// Line counts from 1; it is 0 for the file as a whole.
	Line int
	// Message explains the problem to a person, in at most a few hundred bytes.
	Message string
	// Fatal reports whether the problem leaves no sensible book. Readers stumble over
	// the others.
	Fatal bool
	// Missing is the link's target if it is not among the files. The caller may know of
	// files that were not given.
	Missing string
	// MdBook reports whether this is only a problem when mdBook serves the book. The
	// viewer's readers do not notice it.
	MdBook bool
}

// Read makes a book of files. It never fails: whatever is wrong is in the Problems. Of
// several files with one path the last counts.
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
