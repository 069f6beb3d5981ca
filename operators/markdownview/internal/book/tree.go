package book

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tree returns the navigation of a site without SUMMARY.md: pages and directories, ordered
// by name. The index of a directory becomes the entry of the directory. The pages must be
// sorted by path.
func tree(pages []Page) []Entry {
	root := &directory{}
	for i := range pages {
		p := &pages[i]
		d := root
		for rest := dirOf(p.Path); rest != ""; {
			var name string
			name, rest, _ = strings.Cut(rest, "/")
			d = d.child(name)
		}
		if isIndex(p.Path) && d.index == nil {
			d.index = p
			continue
		}
		d.pages = append(d.pages, p)
	}
	entries := root.entries()
	if root.index != nil {
		entries = slices.Insert(entries, 0, Entry{Title: root.index.Title, Path: root.index.Path})
	}
	return entries
}

// directory holds pages and subdirectories.
type directory struct {
	name   string
	index  *Page
	pages  []*Page
	dirs   []*directory
	byName map[string]*directory
}

func (d *directory) child(name string) *directory {
	if c, ok := d.byName[name]; ok {
		return c
	}
	if d.byName == nil {
		d.byName = map[string]*directory{}
	}
	c := &directory{name: name}
	d.byName[name] = c
	d.dirs = append(d.dirs, c)
	return c
}

func (d *directory) entries() []Entry {
	type named struct {
		name string
		Entry
	}
	var all []named
	for _, p := range d.pages {
		all = append(all, named{strings.TrimSuffix(path.Base(p.Path), ".md"), Entry{Title: p.Title, Path: p.Path}})
	}
	for _, c := range d.dirs {
		e := Entry{Title: nameTitle(c.name), Children: c.entries()}
		if c.index != nil {
			e.Title, e.Path = c.index.Title, c.index.Path
		}
		all = append(all, named{c.name, e})
	}
	slices.SortStableFunc(all, func(a, b named) int { return strings.Compare(a.name, b.name) })
	entries := make([]Entry, len(all))
	for i := range all {
		entries[i] = all[i].Entry
	}
	return entries
}

// nameTitle derives a title from the name of a file or directory.
func nameTitle(name string) string {
	words := strings.TrimSpace(strings.NewReplacer("-", " ", "_", " ").Replace(name))
	if words == "" {
		return name
	}
	first, size := utf8.DecodeRuneInString(words)
	return string(unicode.ToUpper(first)) + words[size:]
}
