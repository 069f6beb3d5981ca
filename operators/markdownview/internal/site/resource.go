package site

import (
	"net/http"
	"strconv"
)

// Resource is a prepared response, held uncompressed and, if this saves space, also
// compressed.
type Resource struct {
	Status int
	Plain  Encoded
	// Gzip has no body if compression saves nothing.
	Gzip Encoded
}

// Encoded is a resource in one encoding.
type Encoded struct {
	// Headers holds all headers except the date. All responses share Headers and the slices
	// in it.
	Headers []Header
	// Tag is the value of ETag; empty if the resource is not cached.
	Tag  string
	Body Body
}

// Header is a header in the form that net/http uses, so that a response allocates nothing.
type Header struct {
	Key    string
	Values []string
}

// pagePolicy allows only the site's own scripts and styles. The policy forbids scripts and styles
// in the text of a page, and does not let other sites show the page in a frame. Images must come
// from the site, because another host would learn who reads which page; the renderer shows images
// from other hosts as links. Scripts cannot create HTML from strings.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// assetPolicy isolates a file that a browser opens as a document, such as an SVG: it has no
// scripts, no forms and a separate origin.
const assetPolicy = "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox"

// pdfPolicy omits the sandbox, which would prevent the browser's PDF viewer from starting.
const pdfPolicy = "frame-ancestors 'self'"

const (
	// revalidate makes the browser check each time whether its copy is current.
	revalidate = "no-cache"
	// forever is used for addresses that contain a hash of the content.
	forever = "public, max-age=31536000, immutable"
)

// security holds the headers of every response.
var security = []Header{
	{"X-Content-Type-Options", []string{"nosniff"}},
	{"Referrer-Policy", []string{"same-origin"}},
	{"Cross-Origin-Opener-Policy", []string{"same-origin"}},
	{"Permissions-Policy", []string{"camera=(), geolocation=(), microphone=(), payment=(), usb=()"}},
	{"X-Frame-Options", []string{"SAMEORIGIN"}},
}

// Secure sets the security headers of a page. Use Secure for responses that do not come from a
// Site.
func Secure(h http.Header) {
	for _, s := range security {
		h[s.Key] = s.Values
	}
	h["Content-Security-Policy"] = []string{pagePolicy}
}

// kind holds the properties that determine the status and the headers of a resource.
type kind struct {
	status       int
	contentType  string
	policy       string
	cache        string
	disposition  string
	compressible bool
}

var pageKind = kind{status: http.StatusOK, contentType: "text/html; charset=utf-8", policy: pagePolicy, cache: revalidate, compressible: true}

// resource makes a resource from parts.
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
