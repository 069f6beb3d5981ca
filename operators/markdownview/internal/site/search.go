package site

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The server's search is for readers without JavaScript, and works like the search in the
// browser (theme/site.js). The search scans the text of all sections, which for a thousand
// pages is a few megabytes and takes milliseconds. Unlike an index of words, the scan finds
// parts of words and works for languages without spaces.

const (
	mostTerms   = 8
	longestTerm = 60
	mostResults = 30
	mostPerPage = 3
	snippetSize = 160
)

// indexed is a page in the index.
type indexed struct {
	URL   string `json:"u"`
	Title string `json:"t"`
	// Sections hold the id, the heading and the text of each section.
	Sections [][3]string `json:"s"`
}

// index holds the text of the site as JSON for browsers. The server decodes this JSON only for
// readers without JavaScript.
type index struct {
	json []byte
	read func() (pages, lower []indexed)
}

func newIndex(pages []indexed) *index {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(pages) // encoding strings to a buffer cannot fail
	x := &index{json: out.Bytes()}
	x.read = sync.OnceValues(func() (pages, lower []indexed) {
		_ = json.Unmarshal(x.json, &pages) // decoding the JSON from above cannot fail
		return pages, lowered(pages)
	})
	return x
}

func lowered(pages []indexed) []indexed {
	lower := make([]indexed, len(pages))
	for i, p := range pages {
		lower[i] = indexed{Title: strings.ToLower(p.Title), Sections: make([][3]string, len(p.Sections))}
		for j, s := range p.Sections {
			lower[i].Sections[j] = [3]string{s[0], strings.ToLower(s[1]), strings.ToLower(s[2])}
		}
	}
	return lower
}

// result is a section that matches a query.
type result struct {
	URL, Title, Heading string
	// Snippet is the text around the first match, cut so that every second piece is a
	// match.
	Snippet []string

	page, section  int
	matched, score int
}

// terms returns the words of a query.
func terms(query string) []string {
	words := strings.FieldsFunc(strings.ToLower(query), func(c rune) bool { return unicode.IsSpace(c) || c == '"' })
	if len(words) > mostTerms {
		words = words[:mostTerms]
	}
	for i, w := range words {
		if len(w) > longestTerm {
			words[i] = strings.ToValidUTF8(w[:longestTerm], "")
		}
	}
	return words
}

// search returns the sections that contain the most words of the query, beginning with the
// best section.
func (x *index) search(words []string) []result {
	var found []result
	if len(words) == 0 {
		return nil
	}
	pages, lower := x.read()
	for i, p := range lower {
		for j, s := range p.Sections {
			r := result{page: i, section: j}
			for _, w := range words {
				if score := weigh(s[1], w, 12, 1) + weigh(p.Title, w, 8, 1)/(min(j, 1)+1) + weigh(s[2], w, 1, 5); score > 0 {
					r.matched++
					r.score += score
				}
			}
			if r.matched > 0 {
				found = append(found, r)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b result) int {
		return cmp.Or(cmp.Compare(b.matched, a.matched), cmp.Compare(b.score, a.score))
	})
	return best(found, words, pages, lower)
}

// best returns the best results, with the texts that readers see.
func best(found []result, words []string, pages, lower []indexed) []result {
	var results []result
	perPage := map[int]int{}
	for _, r := range found {
		if len(results) == mostResults || r.matched < found[0].matched {
			break
		}
		if perPage[r.page]++; perPage[r.page] > mostPerPage {
			continue
		}
		p := &pages[r.page]
		s := p.Sections[r.section]
		r.URL, r.Title, r.Heading = p.URL, p.Title, s[1]
		if s[0] != "" && r.section > 0 {
			r.URL += "#" + s[0]
		}
		r.Snippet = snippet(s[2], lower[r.page].Sections[r.section][2], words)
		results = append(results, r)
	}
	return results
}

// weigh rates how well a lower-case text matches a word. Matches at the beginning of a word
// count twice, and only a limited number of matches count.
func weigh(text, word string, weight, most int) int {
	sum := 0
	for from, seen := 0, 0; seen < most; seen++ {
		at := strings.Index(text[from:], word)
		if at < 0 {
			break
		}
		at += from
		sum += weight
		if before, _ := utf8.DecodeLastRuneInString(text[:at]); at == 0 || !unicode.IsLetter(before) && !unicode.IsDigit(before) {
			sum += weight
		}
		from = at + len(word)
	}
	return sum
}

// snippet cuts a part out of a text around the first match, and marks all matches.
func snippet(text, lower string, words []string) []string {
	if len(text) != len(lower) {
		text = lower // the offsets differ, so the snippet is in lower case
	}
	first := len(text)
	for _, w := range words {
		if at := strings.Index(lower, w); at >= 0 {
			first = min(first, at)
		}
	}
	if first == len(text) {
		first = 0
	}
	from := boundary(text, max(0, first-snippetSize/3))
	to := boundary(text, min(len(text), from+snippetSize))
	var pieces []string
	at := from
	for at < to {
		next, size := to, 0
		for _, w := range words {
			if i := strings.Index(lower[at:to], w); i >= 0 && (at+i < next || at+i == next && len(w) > size) {
				next, size = at+i, len(w)
			}
		}
		pieces = append(pieces, text[at:next])
		if size > 0 {
			pieces = append(pieces, text[next:next+size])
		}
		at = next + size
	}
	if len(pieces) > 0 && from > 0 {
		pieces[0] = "… " + pieces[0]
	}
	if to < len(text) {
		if len(pieces)%2 == 0 {
			pieces = append(pieces, "")
		}
		pieces[len(pieces)-1] += " …"
	}
	return pieces
}

// boundary returns the offset of the beginning of a word near the given offset. If no word
// begins nearby, boundary returns the beginning of a character.
func boundary(text string, at int) int {
	const near = 20
	if at <= 0 || at >= len(text) {
		return max(0, min(at, len(text)))
	}
	if space := strings.LastIndexByte(text[max(0, at-near):at], ' '); space >= 0 {
		return max(0, at-near) + space + 1
	}
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}
