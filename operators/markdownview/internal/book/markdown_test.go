package book

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark/ast"
)

func TestHeadingIDsAreGitHubs(t *testing.T) {
	for _, c := range []struct{ heading, id string }{
		{"Getting started", "getting-started"},
		{"What's new, and what isn't?", "whats-new-and-what-isnt"},
		{"A & B", "a--b"},
		{"snake_case and kebab-case", "snake_case-and-kebab-case"},
		{"`kubectl get` of *many* [things](x.md#y)", "kubectl-get-of-many-things"},
		{"Größe: ÄÖÜ", "größe-äöü"},
		{"日本語 の 見出し", "日本語-の-見出し"},
		{"हिन्दी", "हिन्दी"},
		{"1.2.3 (2026-11-20)", "123-2026-11-20"},
		{"Emoji 🎉 here", "emoji--here"},
		{"R&amp;D \\*now\\*", "rd-now"},
		{"a <b>bold</b> tag", "a-bold-tag"},
		{"!!!", "section"},
		{"Chosen {#mine}", "mine"},
	} {
		p := Read(files("a.md", "## "+c.heading+"\n")).Pages[0]
		if len(p.Headings) != 1 || p.Headings[0].ID != c.id {
			t.Errorf("%q: %+v, want %q", c.heading, p.Headings, c.id)
		}
	}
}

func TestHeadingIDsAreUnique(t *testing.T) {
	text := "# A\n\n# A-1\n\n# A\n\n# A\n\n# A {#a}\n\n# B {#a-2}\n\n# !\n\n# ?\n"
	var ids []string
	for _, h := range Read(files("a.md", text)).Pages[0].Headings {
		ids = append(ids, h.ID)
	}
	// Explicit ids are not changed.
	if diff := cmp.Diff([]string{"a-1", "a-1-1", "a-3", "a-4", "a", "a-2", "section", "section-1"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestHeadingsKnowTheirLevelLineAndText(t *testing.T) {
	text := "# One\n\ntext\n\nTwo\nlines\n-----\n\n> ### In a quote ###\n\n- #### In a list\n"
	want := []Heading{
		{ID: "one", Text: "One", Level: 1, Line: 1},
		{ID: "two-lines", Text: "Two lines", Level: 2, Line: 5},
		{ID: "in-a-quote", Text: "In a quote", Level: 3, Line: 9},
		{ID: "in-a-list", Text: "In a list", Level: 4, Line: 11},
	}
	if diff := cmp.Diff(want, Read(files("a.md", text)).Pages[0].Headings); diff != "" {
		t.Error(diff)
	}
}

func TestWhoRendersGivesTheSameHeadingIDs(t *testing.T) {
	text := "# A *b* `c`\n\n## A b c\n\n## Größe {#size}\n\n[^n]\n\n[^n]: note\n"
	var out bytes.Buffer
	if err := Markdown().Convert([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	for _, h := range Read(files("a.md", text)).Pages[0].Headings {
		if !strings.Contains(out.String(), fmt.Sprintf(`id="%s"`, h.ID)) {
			t.Errorf("no id %q in\n%s", h.ID, &out)
		}
	}
}

func TestNewIDsOfTwoPagesKnowNothingOfEachOther(t *testing.T) {
	for range 2 {
		if got := string(NewIDs().Generate([]byte("Same"), ast.KindHeading)); got != "same" {
			t.Errorf("id %q", got)
		}
	}
}

// Beyond a limit, Markdown's characters are kept as plain text.
func TestBeyondALimitTheCharactersStandAsText(t *testing.T) {
	deep := strings.Repeat("> ", 300) + "bottom"
	links := strings.Repeat("[a](b.md) ", 600) + "bottom"
	stars := strings.Repeat("*a* ", 1500) + "bottom"
	table := strings.Repeat("a|", 1000) + "\n" + strings.Repeat("-|", 1000) + "\n" + strings.Repeat("x|\n", 1000) + "bottom"
	definitions := strings.Repeat("[a]: b\n", 3000) + "bottom"
	references := "[a]: " + strings.Repeat("b", 1000) + "\n\n" + strings.Repeat("[a]\n\n", 1000) + "bottom"
	footnotes := ""
	for i := range 1500 {
		footnotes += fmt.Sprintf("[^%d]: note %d\n\n", i, i)
	}
	for name, text := range map[string]string{
		"deep": deep, "links": links, "stars": stars, "table": table, "definitions": definitions, "references": references, "footnotes": footnotes + "bottom",
	} {
		var out bytes.Buffer
		if err := Markdown().Convert([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "bottom") {
			t.Errorf("%s: the text beyond the limit is lost", name)
		}
		if most := 25*len(text) + 4*mostExpanded; out.Len() > most {
			t.Errorf("%s: %d bytes became %d", name, len(text), out.Len())
		}
	}
}

func TestWhatPeopleWriteIsWithinTheLimits(t *testing.T) {
	rows := "| a | b | c |\n|---|---|---|\n" + strings.Repeat("| [x](a.md) | *y* | `z` |\n", 5000)
	list := strings.Repeat("- [a](a.md) and *b* with ~~c~~\n", 3000)
	var nested strings.Builder
	for i := range 12 {
		nested.WriteString(strings.Repeat("  ", i) + "- [a](dead.md)\n")
	}
	b := Read(files("a.md", rows+"\n"+list+"\n"+nested.String()))
	if len(b.Problems) != 12 {
		t.Errorf("%d problems, want the 12 dead links", len(b.Problems))
	}
	var out bytes.Buffer
	if err := Markdown().Convert([]byte(rows+"\n"+list), &out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "<a href"); got != 8000 {
		t.Errorf("%d links, want 8000", got)
	}
	if got := strings.Count(out.String(), "<del>"); got != 3000 {
		t.Errorf("%d deletions, want 3000", got)
	}
}
