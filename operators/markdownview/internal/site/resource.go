package site

import (
	"net/http"
	"strconv"
)

// Resource is a prepared answer, plain and, if it helps, compressed.
type Resource struct {
	Status int
	Plain  Encoded
	// Gzip has no body if compression saves nothing.
	Gzip Encoded
}

// Encoded is a resource in one encoding.
type Encoded struct {
	// Headers holds all headers except the date. The slices are shared by all answers.
	Headers []Header
	// Tag is the value of ETag; empty if not cached.
	Tag  string
	Body Body
}

// Header is a header in net/http's form, so that answering allocates nothing.
type Header struct {
	Key    string
	Values []string
}

// The policy of a page allows the site's own script and style and nothing else: no
// script or style in the text, no foreign frame around it. Images must be from the
// site: a foreign one would tell its host who reads which page, so the renderer shows
// it as a link. Scripts cannot create HTML from strings.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// assetPolicy isolates a file that a browser opens as a document, such as an SVG: no
// script, no form, an origin of its own.
const assetPolicy = "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox"

// pdfPolicy omits the sandbox, which would keep the browser's own reader from starting.
const pdfPolicy = "frame-ancestors 'self'"

const (
	// The browser asks each time whether its copy is current.
	revalidate = "no-cache"
	// The address contains the hash of the content, so it never changes.
	forever = "public, max-age=31536000, immutable"
)

// security holds the headers of every answer.
var security = []Header{
	{"X-Content-Type-Options", []string{"nosniff"}},
	{"Referrer-Policy", []string{"same-origin"}},
	{"Cross-Origin-Opener-Policy", []string{"same-origin"}},
	{"Permissions-Policy", []string{"camera=(), geolocation=(), microphone=(), payment=(), usb=()"}},
	{"X-Frame-Options", []string{"SAMEORIGIN"}},
}

// Secure sets the headers of a page on an answer that is not from a Site.
func Secure(h http.Header) {
	for _, s := range security {
		h[s.Key] = s.Values
	}
	h["Content-Security-Policy"] = []string{pagePolicy}
}

// kind holds what a browser needs to know of a resource.
type kind struct {
	status       int
	contentType  string
	policy       string
	cache        string
	disposition  string
	compressible bool
}

var pageKind = kind{status: http.StatusOK, contentType: "text/html; charset=utf-8", policy: pagePolicy, cache: revalidate, compressible: true}

// resource makes an answer from parts.
func (c *composer) resource(k kind, parts ...part) *Resource {
	body, tag := c.plain(parts)
	r := &Resource{Status: k.status}
	r.Plain = Encoded{Tag: `"` + tag + `"`, Body: body}
	if k.compressible {
		if zipped := c.gzip(parts); zipped.size < body.size {
			r.Gzip = Encoded{Tag: `"` + tag + `.gz"`, Body: zipped}
		}
	}
	return r.as(k)
}

// as returns the resource with the headers of a kind.
func (r Resource) as(k kind) *Resource {
	vary := r.Gzip.Body.size > 0
	r.Plain.Headers = k.headers(r.Plain, vary, false)
	if vary {
		r.Gzip.Headers = k.headers(r.Gzip, vary, true)
	}
	return &r
}

func (k kind) headers(e Encoded, vary, zipped bool) []Header {
	one := func(key, value string) Header { return Header{key, []string{value}} }
	h := append([]Header{
		one("Content-Type", k.contentType),
		one("Content-Length", strconv.Itoa(e.Body.size)),
		one("Cache-Control", k.cache),
		one("Etag", e.Tag),
		one("Content-Security-Policy", k.policy),
	}, security...)
	if vary {
		h = append(h, one("Vary", "Accept-Encoding"))
	}
	if zipped {
		h = append(h, one("Content-Encoding", "gzip"))
	}
	if k.disposition != "" {
		h = append(h, one("Content-Disposition", k.disposition))
	}
	return h
}
