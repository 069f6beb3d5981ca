package book

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files makes files from pairs of paths and texts.
func files(pairs ...string) []File {
	var all []File
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, File{Path: pairs[i], Data: []byte(pairs[i+1])})
	}
	return all
}

// pages returns empty pages.
func pages(paths ...string) []File {
	var all []File
	for _, p := range paths {
		all = append(all, File{Path: p})
	}
	return all
}

// outline formats a navigation, one entry per line.
func outline(entries []Entry) string {
	var b strings.Builder
	var write func([]Entry, string)
	write = func(entries []Entry, indent string) {
		for _, e := range entries {
			b.WriteString(indent)
			for _, n := range e.Number {
				fmt.Fprintf(&b, "%d.", n)
			}
			if e.Number != nil {
				b.WriteByte(' ')
			}
			switch {
			case e.Separator:
				b.WriteString("---")
			case e.Part:
				b.WriteString("# " + e.Title)
			case e.Path == "":
				b.WriteString(e.Title + " (no page)")
			default:
				b.WriteString(e.Title + " → " + e.Path)
			}
			b.WriteByte('\n')
			write(e.Children, indent+"  ")
		}
	}
	write(entries, "")
	return b.String()
}

// told formats problems, one per line.
func told(problems []Problem) string {
	var b strings.Builder
	for _, p := range problems {
		mark := "warning"
		if p.Fatal {
			mark = "fatal"
		}
		if p.MdBook {
			mark = "mdBook"
		}
		fmt.Fprintf(&b, "%s:%d: %s: %s", p.Path, p.Line, mark, p.Message)
		if p.Missing != "" {
			fmt.Fprintf(&b, " [%s]", p.Missing)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func equal(t *testing.T, what, got, want string) {
	t.Helper()
	want = strings.TrimPrefix(want, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestReadingOrderIsThatOfTheNavigationAndThenByPath(t *testing.T) {
	b := Read(files(SummaryPath, "[C](c.md)\n\n- [A](a.md)\n  - [B](b.md)\n", "z.md", "", "b.md", "", "a.md", "", "c.md", "", "d.md", ""))
	var order []string
	for _, p := range b.Pages {
		order = append(order, p.Path)
		if got := b.Page(p.Path); got == nil || got.Path != p.Path {
			t.Errorf("Page(%q) = %v", p.Path, got)
		}
	}
	if diff := cmp.Diff([]string{"c.md", "a.md", "b.md", "d.md", "z.md"}, order); diff != "" {
		t.Error(diff)
	}
	equal(t, "problems", told(b.Problems), `
d.md:0: warning: no entry of SUMMARY.md leads to this page
z.md:0: warning: no entry of SUMMARY.md leads to this page
`)
	if b.Page("nowhere.md") != nil || b.Page(SummaryPath) != nil {
		t.Error("Page returns a page for a path that has none")
	}
}

func TestTitle(t *testing.T) {
	for claim, c := range map[string]struct {
		files []File
		want  string
	}{
		"is the heading of SUMMARY.md":                        {files(SummaryPath, "# The *Handbook*\n\n- [A](a.md)", "a.md", "# First"), "The Handbook"},
		"is not the heading Summary":                          {files(SummaryPath, "# Summary\n\n- [A](a.md)", "a.md", "# First"), "First"},
		"is not the title of a part":                          {files(SummaryPath, "[A](a.md)\n\n# Part\n\n- [B](b.md)", "a.md", "# First", "b.md", ""), "First"},
		"is the title of the home page":                       {files("a.md", "# First", "README.md", "# Home"), "Home"},
		"is the title of the first page, without a home page": {files("b.md", "# Second", "a.md", "# First"), "First"},
		"is empty without pages":                              {files("x.png", ""), ""},
	} {
		t.Run(claim, func(t *testing.T) {
			if got := Read(c.files).Title; got != c.want {
				t.Errorf("title %q, want %q", got, c.want)
			}
		})
	}
}

func TestTitleOfAPage(t *testing.T) {
	for claim, c := range map[string]struct{ path, text, want string }{
		"is its heading of level 1":                              {"a.md", "## Small\n\n# Big `code` & [link](x.md) \\*", "Big code & link *"},
		"is its first heading if none has level 1":               {"a.md", "text\n\n### Small\n\n## Other", "Small"},
		"is derived from the name of its file":                   {"guide/getting-started.md", "text", "Getting started"},
		"is derived from the name of the directory for an index": {"user_guide/README.md", "text", "User guide"},
		"may be an underlined heading":                           {"a.md", "Big\nHeading\n===\n", "Big Heading"},
		"is not in a comment or in code":                         {"a.md", "<!--\n# No\n-->\n\n```\n# No\n```\n\n# Yes", "Yes"},
		"is found after a byte order mark":                       {"a.md", "\uFEFF# Big", "Big"},
		"is found before a Windows line end":                     {"a.md", "# Big\r\n\r\ntext\r\n", "Big"},
		"is the next heading if the first is empty":              {"a.md", "#\n\n# Big", "Big"},
	} {
		t.Run(claim, func(t *testing.T) {
			b := Read(files(c.path, c.text))
			if got := b.Pages[0].Title; got != c.want {
				t.Errorf("title %q, want %q", got, c.want)
			}
		})
	}
}

func TestHome(t *testing.T) {
	for claim, c := range map[string]struct {
		files []File
		want  string
	}{
		"is README.md of the root":            {pages("a.md", "README.md"), "README.md"},
		"is index.md of the root":             {pages("a.md", "index.md"), "index.md"},
		"is the first entry of SUMMARY.md":    {files(SummaryPath, "- [B](b.md)\n- [A](a.md)", "a.md", "", "b.md", ""), "b.md"},
		"is README.md, wherever it is listed": {files(SummaryPath, "- [B](b.md)\n- [A](README.md)", "README.md", "", "b.md", ""), "README.md"},
		"is not the index of a directory":     {pages("a.md", "Z/README.md"), "Z/README.md"},
		"is not a draft":                      {files(SummaryPath, "- [Draft]()\n- [A](a.md)", "a.md", ""), "a.md"},
		"is missing without pages":            {pages("x.png"), ""},
	} {
		t.Run(claim, func(t *testing.T) {
			if got := Read(c.files).Home; got != c.want {
				t.Errorf("home %q, want %q", got, c.want)
			}
		})
	}
}

func TestWithoutSummaryTheNavigationIsTheTreeOfDirectories(t *testing.T) {
	b := Read(files(
		"b.md", "# Bee", "a.md", "", "index.md", "# Home",
		"guide/README.md", "# The guide", "guide/z.md", "", "guide/deep/er/x.md", "# X",
		"abc/y.md", "# Y", "img/logo.png", "", "guide.d/q.md", "",
	))
	if b.HasSummary {
		t.Error("there is no SUMMARY.md")
	}
	equal(t, "navigation", outline(b.Nav), `
Home → index.md
A → a.md
Abc (no page)
  Y → abc/y.md
Bee → b.md
The guide → guide/README.md
  Deep (no page)
    Er (no page)
      X → guide/deep/er/x.md
  Z → guide/z.md
Guide.d (no page)
  Q → guide.d/q.md
`)
	equal(t, "problems", told(b.Problems), "")
	if diff := cmp.Diff([]File{{Path: "img/logo.png", Data: []byte{}}}, b.Assets); diff != "" {
		t.Error(diff)
	}
}

func TestURL(t *testing.T) {
	for path, want := range map[string]string{
		"guide/install.md":      "guide/install.html",
		"README.md":             "",
		"readme.md":             "",
		"guide/index.md":        "guide/",
		"guide/Readme.md":       "guide/",
		"guide/Index.md":        "guide/Index.html",
		"img/a.b.png":           "img/a.b.png",
		"übersicht/größe.md":    "übersicht/größe.html",
		"guide/SUMMARY.md":      "guide/SUMMARY.html",
		"notes.markdown":        "notes.markdown",
		"guide/about-README.md": "guide/about-README.html",
	} {
		if got := URL(path); got != want {
			t.Errorf("URL(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestFilesThatExcludeEachOtherAreFatal(t *testing.T) {
	for claim, c := range map[string]struct {
		paths []string
		want  string
	}{
		"two indexes of a directory": {[]string{"g/README.md", "g/index.md"}, `
g/index.md:0: fatal: would be served at /g/, the address of g/README.md; rename one of them
`},
		"two spellings of README": {[]string{"README.md", "readme.md"}, `
readme.md:0: fatal: would be served at /, the address of README.md; rename one of them
`},
		"a page and an asset at its address": {[]string{"a.md", "a.html"}, `
a.html:0: fatal: would be served at /a.html, the address of a.md; rename one of them
`},
		"a file that is a directory": {[]string{"a", "a/b.md"}, `
a:0: fatal: is the name of a file and of a directory with other files; rename one of them
`},
		"a page that is a directory":                  {[]string{"a.md", "a.md/b.png"}, "a.md:0: fatal: is the name of a file and of a directory with other files; rename one of them\n"},
		"names that differ only in case are accepted": {[]string{"A.md", "a.md"}, ""},
	} {
		t.Run(claim, func(t *testing.T) {
			equal(t, "problems", told(Read(pages(c.paths...)).Problems), c.want)
		})
	}
}

func TestOfTwoFilesWithOnePathTheLastCounts(t *testing.T) {
	b := Read(files("a.md", "# One", "a.md", "# Two"))
	if len(b.Pages) != 1 || b.Pages[0].Title != "Two" {
		t.Errorf("pages %v", b.Pages)
	}
}

func TestTextThatIsNotUTF8IsMadeUTF8AndToldOf(t *testing.T) {
	b := Read(files("a.md", "# Gr\u00fc\u00dfe\n\nGr\xfc\xdfe"))
	equal(t, "problems", told(b.Problems), "a.md:3: warning: is not UTF-8 here; save the file as UTF-8\n")
	if got, want := string(b.Pages[0].Source), "# Gr\u00fc\u00dfe\n\nGr\uFFFDe"; got != want {
		t.Errorf("source %q, want %q", got, want)
	}
}

func TestNothingMakesAnEmptyBook(t *testing.T) {
	b := Read(nil)
	if len(b.Pages)+len(b.Nav)+len(b.Assets)+len(b.Problems) != 0 || b.Title != "" {
		t.Errorf("%+v", b)
	}
}
