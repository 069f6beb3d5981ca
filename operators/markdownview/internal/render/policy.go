package render

import (
	"regexp"

	"github.com/microcosm-cc/bluemonday"
)

// allowedClass matches the classes that a page may use: the colors of code (at most three letters)
// and the classes that the renderer adds. The classes of the frame are excluded, so that a page
// cannot imitate the frame.
var allowedClass = regexp.MustCompile(`^(` + classToken + `)( (` + classToken + `))*$`)

const classToken = `[a-z][a-z0-9]{0,2}|language-[A-Za-z0-9_+#.-]+|admonition|admonition-(note|tip|important|warning|caution|title)|anchor|table|footnotes|footnote-(ref|backref)|external-image|task`

// allowedID matches the ids that a page may use. On a page, only the ids of footnotes may
// contain a colon. All other ids with a colon belong to the frame.
var allowedID = regexp.MustCompile(`^([\p{L}\p{M}\p{N}\p{Pc}.-]+|fn:\d+|fnref\d*:\d+)$`)

// policy returns the elements and attributes that a page may have. Everything else is
// removed.
func policy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()

	p.AllowAttrs("id").Matching(allowedID).Globally()
	p.AllowAttrs("class").Matching(allowedClass).Globally()
	p.AllowAttrs("dir").Matching(bluemonday.Direction).Globally()
	p.AllowAttrs("lang").Matching(regexp.MustCompile(`^[a-zA-Z]{2,20}(-[a-zA-Z0-9]{1,20})*$`)).Globally()
	p.AllowAttrs("title").Globally()
	p.AllowAttrs("role").Matching(regexp.MustCompile(`^(note|region|doc-noteref|doc-backlink|doc-endnotes)$`)).
		OnElements("div", "a")
	p.AllowAttrs("aria-label").OnElements("a", "div")
	// Scrollable boxes must be reachable with the keyboard.
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("pre", "div")

	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(true)
	p.AllowURLSchemes("http", "https", "mailto", "tel")
	p.AllowDataURIImages()

	p.AllowElements("p", "br", "hr", "wbr", "div", "span", "section", "article", "aside", "figure", "figcaption",
		"h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "code", "summary", "details",
		"abbr", "cite", "dfn", "em", "kbd", "mark", "s", "samp", "strong", "sub", "sup", "var", "q", "time",
		"b", "i", "u", "small", "del", "ins", "strike", "tt", "bdi", "bdo", "rp", "rt", "ruby",
		"dl", "dt", "dd", "ul", "ol", "li", "caption", "table", "thead", "tbody", "tfoot", "tr", "td", "th", "col", "colgroup")
	p.AllowNoAttrs().OnElements("span", "div", "a")
	p.AllowAttrs("open").Matching(regexp.MustCompile(`^(|open)$`)).OnElements("details")
	p.AllowAttrs("datetime").Matching(bluemonday.ISO8601).OnElements("time", "del", "ins")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("reversed").Matching(regexp.MustCompile(`^$`)).OnElements("ol")
	p.AllowAttrs("type").Matching(bluemonday.ListType).OnElements("ul", "ol", "li")
	p.AllowAttrs("value").Matching(bluemonday.Integer).OnElements("li")
	p.AllowAttrs("align").Matching(bluemonday.CellAlign).OnElements("p", "div", "h1", "h2", "h3", "td", "th", "tr", "col")
	p.AllowAttrs("colspan", "rowspan").Matching(bluemonday.Integer).OnElements("td", "th")
	p.AllowAttrs("span").Matching(bluemonday.Integer).OnElements("col", "colgroup")
	p.AllowAttrs("scope").Matching(regexp.MustCompile(`^(row|col)(group)?$`)).OnElements("th")

	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs("name").Matching(allowedID).OnElements("a")
	p.AllowAttrs("src").OnElements("img")
	p.AllowAttrs("alt").OnElements("img")
	p.AllowAttrs("height", "width").Matching(bluemonday.NumberOrPercent).OnElements("img")
	p.AllowAttrs("align").Matching(bluemonday.ImageAlign).OnElements("img")
	p.AllowAttrs("loading").Matching(regexp.MustCompile(`^lazy$`)).OnElements("img")

	// Checkboxes of task lists are the only form elements.
	p.AllowAttrs("type").Matching(regexp.MustCompile(`^checkbox$`)).OnElements("input")
	p.AllowAttrs("checked", "disabled").Matching(regexp.MustCompile(`^$`)).OnElements("input")
	return p
}
