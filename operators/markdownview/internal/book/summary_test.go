package book

import (
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	all := []string{"a.md", "b.md", "c.md", "d.md", "e.md", "dir/x.md", "with space.md", "größe.md", "(p).md", "logo.png"}
	for claim, c := range map[string]struct{ summary, nav, problems string }{
		"has prefix chapters, numbered chapters and suffix chapters": {
			"# Summary\n\n[A](a.md)\n\n- [B](b.md)\n- [C](c.md)\n\n[D](d.md)\n[E](e.md)\n", `
A → a.md
1. B → b.md
2. C → c.md
D → d.md
E → e.md
`, ""},
		"nests lists, and numbers nested chapters": {
			"- [A](a.md)\n  - [B](b.md)\n    - [C](c.md)\n  - [D](d.md)\n- [E](e.md)\n", `
1. A → a.md
  1.1. B → b.md
    1.1.1. C → c.md
  1.2. D → d.md
2. E → e.md
`, ""},
		"nests by tabs": {"- [A](a.md)\n\t- [B](b.md)\n", "1. A → a.md\n  1.1. B → b.md\n", ""},
		"has part titles, across which numbers continue": {
			"# Summary\n\n# One\n\n- [A](a.md)\n\n# Two `x`\n\n- [B](b.md)\n", `
# One
1. A → a.md
# Two x
2. B → b.md
`, ""},
		"has part titles without a title when a prefix chapter comes first": {
			"[A](a.md)\n\n# One\n\n- [B](b.md)\n", "A → a.md\n# One\n1. B → b.md\n", ""},
		"has separators at the top level, across which numbers continue": {
			"---\n\n[A](a.md)\n\n---\n\n- [B](b.md)\n\n---\n\n- [C](c.md)\n\n***\n\n[D](d.md)\n\n---\n", `
---
A → a.md
---
1. B → b.md
---
2. C → c.md
---
D → d.md
---
`, ""},
		"has drafts": {
			"[Before]()\n\n- [A](a.md)\n- [To come]()\n  - [B](b.md)\n", `
Before (no page)
1. A → a.md
2. To come (no page)
  2.1. B → b.md
`, ""},
		"accepts lists of any kind":               {"1. [A](a.md)\n2. [B](b.md)\n\n* [C](c.md)\n\n+ [D](d.md)\n", "1. A → a.md\n2. B → b.md\n3. C → c.md\n4. D → d.md\n", ""},
		"accepts items that blank lines separate": {"- [A](a.md)\n\n  - [B](b.md)\n\n- [C](c.md)\n", "1. A → a.md\n  1.1. B → b.md\n2. C → c.md\n", ""},
		"may contain comments":                    {"<!-- x -->\n# Title\n<!-- y -->\n- [A](a.md)\n<!-- z -->\n- [B](b.md)\n", "1. A → a.md\n2. B → b.md\n", ""},
		"may contain headings of lower levels":    {"# Summary\n\n## Basics\n\n- [A](a.md)\n\n## More\n\n- [B](b.md)\n", "1. A → a.md\n2. B → b.md\n", ""},
		"may have Windows line ends":              {"# Summary\r\n\r\n- [A](a.md)\r\n  - [B](b.md)\r\n", "1. A → a.md\n  1.1. B → b.md\n", ""},
		"may begin with a byte order mark":        {"\uFEFF# Summary\n\n- [A](a.md)\n", "1. A → a.md\n", ""},
		"accepts reference links":                 {"- [A][one]\n- [B]\n\n[one]: a.md\n[B]: b.md\n", "1. A → a.md\n2. B → b.md\n", ""},
		"removes the markup of titles":            {"- [A `code` *and* **more** \\[x\\] &amp; y](a.md)\n", "1. A code and more [x] & y → a.md\n", ""},
		"joins a title over two lines":            {"- [A\n  long](a.md)\n", "1. A long → a.md\n", ""},
		"accepts paths that begin with ./":        {"- [A](./a.md)\n- [X](./dir/../dir/x.md)\n", "1. A → a.md\n2. X → dir/x.md\n", ""},
		"accepts spaces as %20":                   {"- [A](with%20space.md)\n", "1. A → with space.md\n", ""},
		"accepts spaces in angle brackets":        {"- [A](<with space.md>)\n- [P](<(p).md>)\n", "1. A → with space.md\n2. P → (p).md\n", ""},
		"accepts letters outside ASCII":           {"- [G](größe.md)\n", "1. G → größe.md\n", ""},
		"accepts encoded letters, which mdBook does not": {"- [G](gr%C3%B6%C3%9Fe.md)\n", "1. G → größe.md\n",
			"SUMMARY.md:1: mdBook: links to gr%C3%B6%C3%9Fe.md, which mdBook does not find; write größe.md\n"},
		"accepts a slash at the start, which mdBook does not": {"- [A](/a.md)\n", "1. A → a.md\n",
			"SUMMARY.md:1: mdBook: links to /a.md, which mdBook does not find; write a.md\n"},
		"ignores the text after the link of an item":             {"- [A](a.md) and so on\n", "1. A → a.md\n", ""},
		"ignores other text with a warning":                      {"Hello.\n\n- [A](a.md)\n\nBye.\n", "1. A → a.md\n", "SUMMARY.md:1: warning: this text is not a link and is ignored\nSUMMARY.md:5: warning: this text is not a link and is ignored\n"},
		"ignores a paragraph after a part title, as mdBook does": {"# Title\n\n# Part\n\nSome [text](b.md).\n\n- [A](a.md)\n", "# Part\n1. A → a.md\n", "SUMMARY.md:5: warning: this text is not a link and is ignored\n"},
		"may be empty": {"", "", "SUMMARY.md:0: warning: no entry leads to a page\n"},
		"cannot lead to a page whose name differs in case": {"- [A](A.md)\n", "1. A (no page)\n", "SUMMARY.md:1: fatal: links to A.md, which does not exist [A.md]\n"},

		"cannot lead to a missing page": {"# Summary\n\n- [A](a.md)\n  - [N](n.md)\n", "1. A → a.md\n  1.1. N (no page)\n",
			"SUMMARY.md:4: fatal: links to n.md, which does not exist [n.md]\n"},
		"reports every wrong entry": {"[M](m.md)\n\n- [N](dir/n.md)\n\n[O](o.md)\n", "M (no page)\n1. N (no page)\nO (no page)\n", `
SUMMARY.md:1: fatal: links to m.md, which does not exist [m.md]
SUMMARY.md:3: fatal: links to dir/n.md, which does not exist [dir/n.md]
SUMMARY.md:5: fatal: links to o.md, which does not exist [o.md]
`},
		"cannot lead to a page twice": {"- [A](a.md)\n- [B](b.md)\n- [Again](./a.md)\n", "1. A → a.md\n2. B → b.md\n3. Again (no page)\n", "SUMMARY.md:3: fatal: links to a.md, as line 1 does; a page can have only one entry\n"},
		"cannot lead out of the site": {"- [A](../a.md)\n- [B](dir/../../b.md)\n", "1. A (no page)\n2. B (no page)\n", "SUMMARY.md:1: fatal: links to ../a.md, which is outside the site\nSUMMARY.md:2: fatal: links to dir/../../b.md, which is outside the site\n"},
		"cannot lead to other sites":  {"- [A](https://example.com/a.md)\n- [B](//example.com)\n", "1. A (no page)\n2. B (no page)\n", "SUMMARY.md:1: fatal: links to https://example.com/a.md, which is not a page of this site; an entry must lead to one of its Markdown files\nSUMMARY.md:2: fatal: links to //example.com, which is not a page of this site; an entry must lead to one of its Markdown files\n"},
		"cannot lead into a page":     {"- [A](a.md#part)\n- [B](#x)\n", "1. A (no page)\n2. B (no page)\n", "SUMMARY.md:1: fatal: links to a.md#part; an entry must lead to a complete page, without #\nSUMMARY.md:2: fatal: links to #x; an entry must lead to a complete page, without #\n"},
		"cannot lead to anything but a page": {"- [L](logo.png)\n- [D](dir/)\n- [D](dir)\n- [S](SUMMARY.md)\n- [R](/)\n", "1. L (no page)\n2. D (no page)\n3. D (no page)\n4. S (no page)\n5. R (no page)\n", `
SUMMARY.md:1: fatal: links to logo.png, which is not a Markdown file
SUMMARY.md:2: fatal: links to dir/, which is not a Markdown file
SUMMARY.md:3: fatal: links to dir, which is not a Markdown file
SUMMARY.md:4: fatal: links to SUMMARY.md, which is not a Markdown file
SUMMARY.md:5: fatal: links to /, which is not a Markdown file
`},
		"cannot have an item that is not a link": {"- [A](a.md)\n- B\n-\n- **[C](c.md)**\n- ![D](d.md)\n- [E] (e.md)\n", "1. A → a.md\n", strings.Repeat("SUMMARY.md:0: fatal: a list item must begin with a link: - [Title](page.md), or - [Title]() for a page that is not written yet\n", 5)},
		"cannot have a list after suffix chapters": {"- [A](a.md)\n\n[B](b.md)\n\n- [C](c.md)\n", "1. A → a.md\nB → b.md\n",
			"SUMMARY.md:5: fatal: a list or a part title cannot follow suffix chapters; move these chapters into the list, or below the list\n"},
		"cannot have a part after suffix chapters": {"- [A](a.md)\n\n[B](b.md)\n\n# C\n", "1. A → a.md\nB → b.md\n",
			"SUMMARY.md:5: fatal: a list or a part title cannot follow suffix chapters; move these chapters into the list, or below the list\n"},
	} {
		t.Run(claim, func(t *testing.T) {
			given := append(pages(all...), File{SummaryPath, []byte(c.summary)})
			b := Read(given)
			if !b.HasSummary {
				t.Error("SUMMARY.md was not found")
			}
			equal(t, "navigation", outline(b.Nav), c.nav)
			var ofSummary []Problem
			for i, p := range b.Problems {
				if strings.Contains(c.problems, "SUMMARY.md:0: fatal") {
					if p.Path == SummaryPath && p.Line != i+2 {
						t.Errorf("line %d, want %d", p.Line, i+2)
					}
					p.Line = 0
				}
				if p.Path == SummaryPath {
					ofSummary = append(ofSummary, p)
				}
			}
			equal(t, "problems", told(ofSummary), c.problems)
		})
	}
}

func TestEntriesKnowTheirLines(t *testing.T) {
	b := Read(files(SummaryPath, "# T\n\n[A](a.md)\n[B](b.md)\n\n---\n\n# Part\n\n- [C](c.md)\n\n  - [D][d]\n\n[d]: d.md\n", "a.md", "", "b.md", "", "c.md", "", "d.md", ""))
	var lines []int
	var walk func([]Entry)
	walk = func(entries []Entry) {
		for _, e := range entries {
			lines = append(lines, e.Line)
			walk(e.Children)
		}
	}
	walk(b.Nav)
	want := []int{3, 4, 6, 8, 10, 12}
	if len(lines) != len(want) {
		t.Fatalf("lines %v, want %v", lines, want)
	}
	for i := range want {
		if lines[i] != want[i] {
			t.Errorf("lines %v, want %v", lines, want)
			break
		}
	}
}
