package book

import "strings"

// order sorts the pages into reading order, and reports pages without an entry in
// SUMMARY.md.
func (r *reader) order() {
	b := r.book
	pages := make([]Page, 0, len(b.Pages))
	taken := make(map[string]bool, len(b.Pages))
	var walk func([]Entry)
	walk = func(entries []Entry) {
		for _, e := range entries {
			if n, ok := b.paths.page[e.Path]; ok && !taken[e.Path] {
				taken[e.Path] = true
				pages = append(pages, b.Pages[n])
			}
			walk(e.Children)
		}
	}
	walk(b.Nav)
	for _, p := range b.Pages {
		if !taken[p.Path] {
			pages = append(pages, p)
		}
	}
	b.Pages = pages
	r.index()
	if !b.HasSummary {
		return
	}
	for _, p := range pages[len(taken):] {
		r.warn(p.Path, 0, "no entry of SUMMARY.md leads to this page")
	}
}

func (r *reader) home() {
	b := r.book
	for _, p := range b.Pages {
		if URL(p.Path) == "" {
			b.Home = p.Path
			return
		}
	}
	if len(b.Pages) > 0 {
		b.Home = b.Pages[0].Path
	}
}

func (r *reader) title() {
	b := r.book
	switch {
	case r.summaryTitle != "" && !strings.EqualFold(r.summaryTitle, "summary"):
		b.Title = r.summaryTitle
	case b.Home != "":
		b.Title = b.Page(b.Home).Title
	}
}
