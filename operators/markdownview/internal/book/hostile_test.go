package book

import (
	"fmt"
	"strings"
	"testing"
)

// hostile returns pages of about n bytes, each built to be expensive.
func hostile(n int) map[string]string {
	pages := map[string]string{
		"nested brackets":  strings.Repeat("[", n/2) + strings.Repeat("]", n/2),
		"references":       "[a]: " + strings.Repeat("b", 1000) + "\n\n" + strings.Repeat("[a]", n/3),
		"lazy quotes":      strings.Repeat(">", n/2) + "\n" + strings.Repeat("a\n", n/4),
		"wide table":       strings.Repeat("a|", n/8) + "\n" + strings.Repeat("-|", n/8) + "\n" + strings.Repeat("|\n", n/4),
		"html block":       "<div>\n" + strings.Repeat("<a href=x>\n", n/11),
		"footnote uses":    "[^1]: a\n\n" + strings.Repeat("[^1] ", n/5),
		"growing code":     "",
		"growing lists":    "",
		"chained notes":    "",
		"long open target": "[a](" + strings.Repeat("b", n/2) + strings.Repeat("[a](", n/8),
	}
	for _, unit := range []string{
		"[", "]", "[]", "[a](", "![", "[![a](b)", "[a](b.md) ", "[a](<b", "[a]((((", "[a]: b\n", "[a]: \n", "[a]: b '\n", "[a\n", "[\n", "[^1]", "[^1]: a\n",
		"*a **a ", "*a_b ", "**a_", "a**b", "*", "_a", "~~a", "~a ", "`a", "> ", ">", ">- ", "- ", "1. ", "> a\n", "- [ ] \n", "a|", "-|",
		"<", "<a ", "<!-- ", "<?", "<![CDATA[", "<!A ", "&amp", "&", "\\", "http://a ", "www.a.", "a@b.", "@", "a:",
		"# a\n", "# A *b*\n", "# a\n\n", "# a {", "# a {#a\n", "# a-1\n# a\n", "a\n=", "a\n\n", "a\n", "    a\n", " ", "\t", "```\n", "\x00", "a\r", "\xff", "<img src=x> ",
	} {
		pages[fmt.Sprintf("%q", unit)] = strings.Repeat(unit, n/len(unit))
	}
	var code, lists, notes strings.Builder
	for i := 1; code.Len() < n; i++ {
		code.WriteString(strings.Repeat("`", i) + " ")
	}
	for i := 0; lists.Len() < n; i++ {
		lists.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	for i := 0; notes.Len() < n; i++ {
		fmt.Fprintf(&notes, "[^%d]: [^%d]\n\n", i, i+1)
	}
	pages["growing code"], pages["growing lists"], pages["chained notes"] = code.String(), lists.String(), notes.String()
	return pages
}

// BenchmarkHostile reads the most expensive pages of 1 MB.
func BenchmarkHostile(b *testing.B) {
	for name, page := range hostile(1 << 20) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Read(files("a.md", page))
			}
		})
	}
}

func thousandPages() []File {
	var all []File
	var summary strings.Builder
	for i := range 1000 {
		name := fmt.Sprintf("part%d/page%d.md", i/50, i)
		fmt.Fprintf(&summary, "- [Page %d](%s)\n", i, name)
		var text strings.Builder
		fmt.Fprintf(&text, "# Page %d\n\n", i)
		for j := 0; text.Len() < 5000; j++ {
			fmt.Fprintf(&text, "## Section %d\n\nSome *text* with `code`, a [link](../part%d/page%d.md#section-0) and\nan https://example.com/address in it.\n\n- one\n- two\n\n```go\nfunc main() {}\n```\n\n", j, (i*7%1000)/50, i*7%1000)
		}
		all = append(all, File{Path: name, Data: []byte(text.String())})
	}
	return append(all, File{Path: SummaryPath, Data: []byte(summary.String())})
}

// BenchmarkThousandPages reads a book of 1,000 pages of 5 kB.
func BenchmarkThousandPages(b *testing.B) {
	given := thousandPages()
	for b.Loop() {
		if got := Read(given); len(got.Problems) != 0 {
			b.Fatal(told(got.Problems[:1]))
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("# T\n\n[P](a.md)\n\n- [A](b.md)\n  - [D]()\n\n---\n\n[S](c/d.md)\n", "# H\n\n[x](../b.md#h) ![i](i.png)\n\n<a href='q'>\n")
	f.Add("# P\n\ntext\n\n- x\n", "[a]: b\n\n[a] [^1]\n\n[^1]: n\n\n| a |\n|--|\n| [x](y) |\n")
	f.Add("\uFEFF- [a][b]\r\n\r\n[b]: c%2Fd.md\r\n", "H\n=\n\n> - # {#x}\n\xff")
	f.Fuzz(func(t *testing.T, summary, page string) {
		given := files("a.md", page, "b.md", "# B", "c/d.md", "", "i.png", "")
		checkBook(t, Read(given), given)
		given = append(given, File{Path: SummaryPath, Data: []byte(summary)})
		checkBook(t, Read(given), given)
	})
}

// checkBook checks the properties that every book must have.
func checkBook(t *testing.T, b *Book, given []File) {
	t.Helper()
	size := map[string]int{}
	for _, f := range given {
		size[f.Path] = strings.Count(string(f.Data), "\n") + 1
	}
	for _, p := range b.Problems {
		if most, ok := size[p.Path]; !ok || p.Line < 0 || p.Line > most {
			t.Errorf("a problem in %s, line %d of %d: %s", p.Path, p.Line, most, p.Message)
		}
		if len(p.Message) > 2000 || p.Message == "" || !strings.HasPrefix(strings.ToValidUTF8(p.Message, "\xff"), p.Message) {
			t.Errorf("message %q", p.Message)
		}
	}
	ids := map[string]bool{}
	for _, p := range b.Pages {
		if p.Title == "" {
			t.Errorf("%s has no title", p.Path)
		}
		for _, h := range p.Headings {
			if h.Line < 1 || h.Line > size[p.Path] || h.Level < 1 || h.Level > 6 || h.ID == "" {
				t.Errorf("%s: invalid heading %+v; the page has %d lines", p.Path, h, size[p.Path])
			}
		}
	}
	var walk func([]Entry)
	walk = func(entries []Entry) {
		for _, e := range entries {
			if e.Path != "" && (ids[e.Path] || b.Page(e.Path) == nil) {
				t.Errorf("entry %+v leads to no page, or to a page that already has an entry", e)
			}
			ids[e.Path] = true
			if b.HasSummary && (e.Line < 1 || e.Line > size[SummaryPath]) {
				t.Errorf("entry %+v is beyond line %d", e, size[SummaryPath])
			}
			walk(e.Children)
		}
	}
	walk(b.Nav)
	if len(b.Pages)+len(b.Assets) != len(size)-map[bool]int{true: 1}[b.HasSummary] {
		t.Errorf("%d pages and %d assets from %d files", len(b.Pages), len(b.Assets), len(size))
	}
}
