package main

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

func TestTheJapanesePagesOfTheHandbookAreReachable(t *testing.T) {
	t.Chdir("..")
	markdowns, err := pages(book)
	if err != nil {
		t.Fatal(err)
	}
	translated, err := pages(japanese)
	if err != nil {
		t.Fatal(err)
	}
	addJapanese(markdowns, translated)
	link := regexp.MustCompile(`\]\(([^():#]+\.md)`)
	for name := range translated {
		if name == "SUMMARY.md" {
			continue
		}
		name = "ja/" + name
		if !strings.Contains(markdowns["SUMMARY.md"], "("+name+")") {
			t.Errorf("%s is not in SUMMARY.md", name)
		}
		for _, found := range link.FindAllStringSubmatch(markdowns[name], -1) {
			target := path.Join(path.Dir(name), found[1])
			if _, exists := markdowns[target]; !exists {
				t.Errorf("%s: %s leads to %s, which is not in the handbook", name, found[1], target)
			}
		}
	}
}
