package guide

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const summary = "SUMMARY.md"

func TestEveryRelativeLinkLeadsToAFileAndAHeadingOfTheBook(t *testing.T) {
	all, pages := files(t), readPages(t)
	for _, p := range pages {
		for _, l := range p.links {
			if strings.HasPrefix(l.target, "https://") {
				continue
			}
			target, anchor, _ := strings.Cut(l.target, "#")
			if target = path.Join(path.Dir(p.path), target); strings.HasPrefix(l.target, "#") {
				target = p.path
			}
			switch _, exists := all[target]; {
			case !exists:
				t.Errorf("%s:%d: %s leads to %s, which is not in the book", p.path, l.line, l.target, target)
			case anchor != "" && !pages[target].anchors[anchor]:
				t.Errorf("%s:%d: %s has no heading with the ID %s", p.path, l.line, target, anchor)
			}
		}
	}
}

func TestSummaryHasEveryPageOnce(t *testing.T) {
	pages := readPages(t)
	entries := map[string]int{}
	for _, l := range pages[summary].links {
		entries[l.target]++
	}
	for name := range pages {
		if name != summary && entries[name] != 1 {
			t.Errorf("%s is %d times in %s", name, entries[name], summary)
		}
	}
}

func TestEveryFileOfTheBookIsEmbedded(t *testing.T) {
	all := files(t)
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) != ".go" {
			if _, embedded := all[name]; !embedded {
				t.Errorf("%s is not among Files; name its directory in doc.go", name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The demo serves the book from one MarkdownView, which can hold 1 MiB of files.
func TestBookFitsIntoOneResource(t *testing.T) {
	const most = 700_000
	total := int64(0)
	for _, size := range files(t) {
		total += size
	}
	if total > most {
		t.Errorf("the book has %d bytes; the maximum is %d", total, most)
	}
}

func TestEveryPageHasOneTitleAtItsTop(t *testing.T) {
	title := regexp.MustCompile(`(?m)^# .+$`)
	for name := range readPages(t) {
		data, err := fs.ReadFile(Files, name)
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(string(data), "")
		titles := len(title.FindAllString(text, -1))
		if !strings.HasPrefix(text, "# ") || titles != 1 && name != summary {
			t.Errorf("%s: has %d titles, or does not begin with one", name, titles)
		}
	}
}

func TestEveryBlockNamesItsLanguage(t *testing.T) {
	for name, p := range readPages(t) {
		for _, b := range p.blocks {
			if b.language == "" {
				t.Errorf("%s:%d: this block names no language", name, b.line)
			}
		}
	}
}

func TestEveryYAMLBlockCanBeParsed(t *testing.T) {
	for name, p := range readPages(t) {
		for _, b := range p.blocks {
			if b.language == "yaml" {
				if _, err := documents(b.text); err != nil {
					t.Errorf("%s:%d: %v", name, b.line, err)
				}
			}
		}
	}
}

// manifest holds the fields that distinguish an object from other YAML.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
}

func documents(text string) ([]manifest, error) {
	var all []manifest
	for _, document := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
		var m manifest
		if err := yaml.Unmarshal([]byte(document), &m); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}
