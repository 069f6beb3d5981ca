package site_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/site"
)

func searched(t *testing.T, s *site.Site, query string) string {
	t.Helper()
	r, err := s.Search(query)
	if err != nil {
		t.Fatal(err)
	}
	_, article, _ := strings.Cut(plain(t, r), "<article")
	return article
}

func TestASearchFindsSectionsWithoutJavaScript(t *testing.T) {
	s := build(t, small, site.Options{BasePath: "/docs/"})
	for query, want := range map[string]string{
		"zebra":           `<a href="/docs/guide/linux.html#steps">Linux <span>› Steps</span></a><p>Download the <mark>zebra</mark>.</p>`,
		"ZEB":             `Download the <mark>zeb</mark>ra.`,
		"kernel with":     `A <mark>kernel</mark> <mark>with</mark> namespaces.`,
		"linux":           `<a href="/docs/guide/linux.html">Linux</a>`,
		"zebra unicorn":   `<mark>zebra</mark>`,
		"nothinglikethis": "This site does not contain “nothinglikethis”",
		"":                "Enter a search term",
		"<script>":        "“&lt;script&gt;”",
	} {
		if got := searched(t, s, query); !strings.Contains(got, want) {
			t.Errorf("%q: no %s in %s", query, want, got)
		}
	}
}

func TestHostileQueriesAreAnswered(t *testing.T) {
	s := build(t, map[string]string{"README.md": "# İstanbul ẞ\n\nİİİİ Straße " + strings.Repeat("日本語のテキスト", 100)}, site.Options{})
	for _, query := range []string{strings.Repeat("a ", 10000), strings.Repeat("İ", 300), "\xff\xfe", "\x00", "日本", "本", "ß", "i̇", "straße", strings.Repeat("本", 400)} {
		searched(t, s, query)
	}
	if got := searched(t, s, "語のテ"); !strings.Contains(got, "<mark>語のテ</mark>") {
		t.Errorf("words without spaces are not found: %s", got)
	}
}

func TestTheBestPlaceComesFirst(t *testing.T) {
	s := build(t, map[string]string{
		"a.md": "# A\n\nThe word backup is here, backup.\n",
		"b.md": "# Backup\n\nHow to.\n",
		"c.md": "# C\n\n## Backup of c\n\nText.\n",
	}, site.Options{})
	got := searched(t, s, "backup")
	if b, c, a := strings.Index(got, `"/b.html"`), strings.Index(got, "/c.html#"), strings.Index(got, `"/a.html"`); b < 0 || b > c || c > a {
		t.Errorf("the order is not title, heading, text: %d %d %d in %s", b, c, a, got)
	}
}

func TestTheIndexHasTheTextOfAllPages(t *testing.T) {
	s := build(t, small, site.Options{})
	page := plain(t, s.Find("/"))
	_, rest, _ := strings.Cut(page, `data-mdv-index="`)
	address, _, _ := strings.Cut(rest, `"`)
	var index []struct {
		U, T string
		S    [][3]string
	}
	if err := json.Unmarshal([]byte(plain(t, s.Find(address))), &index); err != nil {
		t.Fatal(err)
	}
	if len(index) != 4 || index[2].U != "guide/linux.html" || index[2].S[2] != [3]string{"steps", "Steps", "Download the zebra."} {
		t.Errorf("index: %+v", index)
	}
}
