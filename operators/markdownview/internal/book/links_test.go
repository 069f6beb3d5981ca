package book

import (
	"strings"
	"testing"
)

func TestDeadLinks(t *testing.T) {
	others := files(
		"README.md", "# Home", "guide/README.md", "# Guide", "guide/install.md", "# Install\n\n## Step `one`\n\n## Größe & Co.\n\n<a id=\"old\"></a>",
		"guide/with space.md", "# S", "guide/größe.md", "# G", "guide/(p).md", "# P", "guide/img/logo.png", "x", "files/data.csv", "x",
		"guide/quote\"s.md", "",
	)
	const from = "guide/page.md"
	for claim, c := range map[string]struct{ text, want string }{
		"to pages, assets and directories are alive": {
			"[a](install.md) [b](./install.md) [c](../README.md) [d](../guide/install.md) [e](img/logo.png) [f](/guide/install.md) " +
				"[g](/files/data.csv) [h](..) [i](../) [j](.) [k](./) [l](/) [m](../guide) [n](/guide/) [o](install.html) [p](index.html) [q](/index.html) ![r](img/logo.png) [s](page.md)", ""},
		"with encoded letters are alive":         {"[a](with%20space.md) [b](<with space.md>) [c](gr%C3%B6%C3%9Fe.md) [d](größe.md) [e](<(p).md>) [f](\\(p\\).md) [g]((p).md) [h](quote&quot;s.md)", ""},
		"with queries are alive":                 {"[a](install.md?x=1#install) [b](?x=1) ![c](img/logo.png?raw=true)", ""},
		"to headings are alive":                  {"# Page\n\n[a](#page) [b](install.md#step-one) [c](install.md#größe--co) [d](install.md#gr%C3%B6%C3%9Fe--co) [e](install.md#old) [f](#) [g](#top) [h](/#home) [i](..#home) [j](install.md#)", ""},
		"to other sites are not checked":         {"[a](https://example.com/x.md#y) [b](mailto:a@b.example) [c](//example.com/x) [d](tel:+1) [e](javascript:alert) <https://example.com> https://example.com/x www.example.com ![f](data:image/png;base64,AAAA)", ""},
		"to fragments of assets are not checked": {"[a](../files/data.csv#row=4)", ""},
		"in code are not links":                  {"`[a](x.md)`\n\n```\n[b](x.md)\n```\n\n    [c](x.md)\n\n<!-- [d](x.md) <a href=\"x.md\"> -->\n", ""},
		"that are escaped are not links":         {"\\[a](x.md) [b\\](x.md)", ""},
		"to missing pages are reported with the line": {"one\ntwo [a](x.md)\n\n> four\n> [b](../y.md#z)\n", `
guide/page.md:2: warning: link x.md leads to guide/x.md, which does not exist [guide/x.md]
guide/page.md:5: warning: link ../y.md#z leads to y.md, which does not exist [y.md]
`},
		"in a file with Windows line ends have correct lines": {"one\r\n\r\ntwo\r\n[a](x.md)\r\n", "guide/page.md:4: warning: link x.md leads to guide/x.md, which does not exist [guide/x.md]\n"},
		"after a byte order mark":                             {"\uFEFF[a](x.md)", "guide/page.md:1: warning: link x.md leads to guide/x.md, which does not exist [guide/x.md]\n"},
		"in lists, tables, headings, footnotes": {"- a\n  - [a](x1.md)\n\n| h |\n|---|\n| c |\n| [b](x2.md) |\n\n## H [c](x3.md)\n\ntext[^1]\n\n[^1]: note [d](x4.md)\n\n*em **strong [e](x5.md)***\n", `
guide/page.md:2: warning: link x1.md leads to guide/x1.md, which does not exist [guide/x1.md]
guide/page.md:7: warning: link x2.md leads to guide/x2.md, which does not exist [guide/x2.md]
guide/page.md:9: warning: link x3.md leads to guide/x3.md, which does not exist [guide/x3.md]
guide/page.md:13: warning: link x4.md leads to guide/x4.md, which does not exist [guide/x4.md]
guide/page.md:15: warning: link x5.md leads to guide/x5.md, which does not exist [guide/x5.md]
`},
		"by reference have the line of their use": {"[a][r]\n[r]\n[b][]\n\n[r]: x.md 'title'\n[b]: <y z.md>\n", `
guide/page.md:1: warning: link x.md leads to guide/x.md, which does not exist [guide/x.md]
guide/page.md:2: warning: link x.md leads to guide/x.md, which does not exist [guide/x.md]
guide/page.md:3: warning: link y z.md leads to guide/y z.md, which does not exist [guide/y z.md]
`},
		"in links that are images": {"[![i](no.png)](no.md)\n![r][ref]\n\n[ref]: gone.svg\n", `
guide/page.md:1: warning: link no.md leads to guide/no.md, which does not exist [guide/no.md]
guide/page.md:1: warning: image no.png leads to guide/no.png, which does not exist [guide/no.png]
guide/page.md:2: warning: image gone.svg leads to guide/gone.svg, which does not exist [guide/gone.svg]
`},
		"in raw HTML": {"text <a href=\"x1.md\">x</a> and\nmore <IMG SRC='x&amp;2.png'/>\n\n<div>\n<p>\n<a title=\"a\n b\" href=x3.md>\n</p><img alt src=\"x4.png\">\n</div>\n\n> <video src=x5.mp4>\n> <source src=x6.mp4>\n> </video>\n", `
guide/page.md:1: warning: link x1.md leads to guide/x1.md, which does not exist [guide/x1.md]
guide/page.md:2: warning: image x&2.png leads to guide/x&2.png, which does not exist [guide/x&2.png]
guide/page.md:6: warning: link x3.md leads to guide/x3.md, which does not exist [guide/x3.md]
guide/page.md:8: warning: image x4.png leads to guide/x4.png, which does not exist [guide/x4.png]
guide/page.md:11: warning: link x5.mp4 leads to guide/x5.mp4, which does not exist [guide/x5.mp4]
guide/page.md:12: warning: link x6.mp4 leads to guide/x6.mp4, which does not exist [guide/x6.mp4]
`},
		"to missing headings": {"# Page\n\n[a](#pag)\n[b](install.md#step-two)\n[c](install.md#Install)\n", `
guide/page.md:3: warning: link #pag leads to #pag, which this page does not have
guide/page.md:4: warning: link install.md#step-two leads to #step-two, which guide/install.md does not have
guide/page.md:5: warning: link install.md#Install leads to #Install, which guide/install.md does not have
`},
		"out of the site":                        {"[a](../../x.md)\n", "guide/page.md:1: warning: link ../../x.md leads outside the site\n"},
		"from the root":                          {"[a](/nowhere/x.md)\n[b](/../README.md)\n", "guide/page.md:1: warning: link /nowhere/x.md leads to nowhere/x.md, which does not exist [nowhere/x.md]\n"},
		"to directories that have no page":       {"[a](img/)\n[b](../files)\n", "guide/page.md:1: warning: link img/ leads to a directory without README.md or index.md [guide/img/README.md]\nguide/page.md:2: warning: link ../files leads to a directory without README.md or index.md [files/README.md]\n"},
		"to missing directories":                 {"[a](nope/)\n", "guide/page.md:1: warning: link nope/ leads to guide/nope/, which does not exist [guide/nope/]\n"},
		"with a broken encoding are not decoded": {"[a](100%.md)\n", "guide/page.md:1: warning: link 100%.md leads to guide/100%.md, which does not exist [guide/100%.md]\n"},
		"that are very long are cut":             {"[a](" + strings.Repeat("x", 300) + ")\n", "guide/page.md:1: warning: link " + strings.Repeat("x", 120) + "… leads to guide/" + strings.Repeat("x", 114) + "…, which does not exist [guide/" + strings.Repeat("x", 300) + "]\n"},
		"that are too long are not followed":     {"[a](" + strings.Repeat("x", 3000) + ")\n[b](https://example.com/" + strings.Repeat("x", 3000) + ")\n", "guide/page.md:1: warning: the link to " + strings.Repeat("x", 120) + "… is longer than 1024 bytes\n"},
	} {
		t.Run(claim, func(t *testing.T) {
			b := Read(append(files(from, c.text), others...))
			equal(t, "problems", told(b.Problems), c.want)
		})
	}
}

func TestALinkToTheNavigationIsDead(t *testing.T) {
	b := Read(files(SummaryPath, "- [A](a.md)", "a.md", "[s](SUMMARY.md)"))
	equal(t, "problems", told(b.Problems), "a.md:1: warning: link SUMMARY.md leads to SUMMARY.md, which is not a page\n")
}

func TestTheMessageOfALinkThatIsItsTargetSaysItOnce(t *testing.T) {
	b := Read(files("a.md", "[s](b.md)"))
	equal(t, "problems", told(b.Problems), "a.md:1: warning: link b.md leads to a missing file [b.md]\n")
}

func TestResolve(t *testing.T) {
	type answer struct {
		target, fragment string
		local            bool
	}
	for _, c := range []struct {
		from, link string
		want       answer
	}{
		{"a.md", "b.md", answer{"b.md", "", true}},
		{"d/a.md", "b.md#x", answer{"d/b.md", "x", true}},
		{"d/a.md", "./b.md", answer{"d/b.md", "", true}},
		{"d/a.md", "../b.md?q#x", answer{"b.md", "x", true}},
		{"d/a.md", "../../b.md", answer{"../b.md", "", true}},
		{"d/a.md", "/b.md", answer{"b.md", "", true}},
		{"d/a.md", "/../b.md", answer{"b.md", "", true}},
		{"d/a.md", "#x%20y", answer{"d/a.md", "x y", true}},
		{"d/a.md", "?q", answer{"d/a.md", "", true}},
		{"d/a.md", "", answer{"d/a.md", "", true}},
		{"d/a.md", ".", answer{"d/", "", true}},
		{"d/a.md", "..", answer{"", "", true}},
		{"d/a.md", "e/", answer{"d/e/", "", true}},
		{"d/a.md", "/", answer{"", "", true}},
		{"a.md", "./", answer{"", "", true}},
		{"a.md", "..", answer{"../", "", true}},
		{"a.md", "b%2Fc%20d.md", answer{"b/c d.md", "", true}},
		{"a.md", "b%zz.md", answer{"b%zz.md", "", true}},
		{"a.md", "  b.md ", answer{"b.md", "", true}},
		{"a.md", "a:b.md", answer{}},
		{"a.md", "./a:b.md", answer{"a:b.md", "", true}},
		{"a.md", "1:b.md", answer{"1:b.md", "", true}},
		{"a.md", "HTTPS://x", answer{}},
		{"a.md", "git+ssh://x", answer{}},
		{"a.md", "//x/y", answer{}},
	} {
		target, fragment, local := Resolve(c.from, c.link)
		if got := (answer{target, fragment, local}); got != c.want {
			t.Errorf("Resolve(%q, %q) = %+v, want %+v", c.from, c.link, got, c.want)
		}
	}
}

func TestFind(t *testing.T) {
	b := Read(pages("first.md", "g/README.md", "g/a.md", "h/b.md", "h/c.html", "img/x.png"))
	for target, want := range map[string]string{
		"g/a.md": "g/a.md", "g/a.html": "g/a.md", "g/": "g/README.md", "g": "g/README.md", "g/index.html": "g/README.md",
		"h/": "h/", "h": "h/", "h/c.html": "h/c.html", "img/x.png": "img/x.png", "": "first.md", "index.html": "first.md",
	} {
		if got, ok := b.Find(target); !ok || got != want {
			t.Errorf("Find(%q) = %q, %v, want %q", target, got, ok, want)
		}
	}
	for _, target := range []string{"h/index.html", "x.md", "g/a", "h/c.md", "../x", "gindex.html", "img/x.png/"} {
		if got, ok := b.Find(target); ok {
			t.Errorf("Find(%q) = %q, want nothing", target, got)
		}
	}
	if got, ok := Read(nil).Find(""); ok {
		t.Errorf("a site without files has %q at its root", got)
	}
}
