// Package readers makes books in which every piece names its edition. The package also reads a site
// like several concurrent readers, to find failures and mixtures of editions.
package readers

import (
	"fmt"
	"regexp"
	"strconv"
)

// Asset is the path of each book's asset, which is a file that is not a page.
const Asset = "files/notes.txt"

var markAt = regexp.MustCompile(`edition-(\d+)-x`)

// Mark returns the text that all pieces of an edition contain.
func Mark(edition int) string { return fmt.Sprintf("edition-%d-x", edition) }

// Book returns an edition of a book with this number of pages. The mark of the edition is
// in each page and in the navigation, and therefore also in the title and the search index.
func Book(edition, pages int) map[string]string {
	mark := Mark(edition)
	summary := fmt.Sprintf("# Book %s\n\n[Welcome %s](README.md)\n\n", mark, mark)
	files := map[string]string{
		"README.md": fmt.Sprintf("# Welcome %s\n\nThis is %s.\n", mark, mark),
		Asset:       mark + "\n",
	}
	for n := range pages - 1 {
		path := fmt.Sprintf("part-%d/page-%03d.md", n/10, n)
		summary += fmt.Sprintf("- [Page %d %s](%s)\n", n, mark, path)
		files[path] = fmt.Sprintf("# Page %d %s\n\nA *page* of %s, see [notes](../%s).\n\n```go\nfmt.Println(%d)\n```\n", n, mark, mark, Asset, n)
	}
	files["SUMMARY.md"] = summary
	return files
}

// EditionOf returns the edition of a text. A text without an edition, or with two, is
// an error.
func EditionOf(text []byte) (int, error) {
	edition := -1
	for _, found := range markAt.FindAllSubmatch(text, -1) {
		n, err := strconv.Atoi(string(found[1]))
		if err != nil {
			return 0, err
		}
		if edition >= 0 && n != edition {
			return 0, fmt.Errorf("the page has the marks of two editions, %d and %d", edition, n)
		}
		edition = n
	}
	if edition < 0 {
		return 0, fmt.Errorf("the page has no edition mark: %.200q", text)
	}
	return edition, nil
}
