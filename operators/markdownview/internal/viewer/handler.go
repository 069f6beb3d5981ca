package viewer

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/site"
)

// handler serves the current site. Each response uses one Site, which is loaded once at the
// start.
type handler struct {
	site     *atomic.Pointer[site.Site]
	state    *state
	base     string
	draining *atomic.Bool
	logger   *slog.Logger
}

var (
	closeConnection = []string{"close"}
	textPlain       = []string{"text/plain; charset=utf-8"}
	noStore         = []string{"no-store"}
	allowed         = []string{"GET, HEAD"}
)

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.draining.Load() {
		// With this header, the client sends its next request on a new connection, to a viewer that
		// keeps running.
		w.Header()["Connection"] = closeConnection
	}
	switch h.probe(r.URL.Path) {
	case "healthz":
		h.text(w, r, http.StatusOK, "ok\n")
		return
	case "readyz":
		ready, detail := h.state.ready(h.draining.Load())
		status := http.StatusOK
		if !ready {
			status = http.StatusServiceUnavailable
		}
		h.text(w, r, status, detail)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header()["Allow"] = allowed
		h.text(w, r, http.StatusMethodNotAllowed, "this site is read-only: use GET or HEAD\n")
		return
	}
	s := h.site.Load()
	if s == nil {
		w.Header().Set("Retry-After", "5")
		h.text(w, r, http.StatusServiceUnavailable, "the site is not loaded yet\n")
		return
	}
	h.page(w, r, s)
}

// probe returns the name of the probe at a path. Probes are at the root and below the base
// path.
func (h *handler) probe(path string) string {
	switch {
	case path == "/healthz" || path == "/readyz":
		return path[1:]
	case strings.HasPrefix(path, h.base):
		return path[len(h.base):]
	}
	return ""
}

func (h *handler) page(w http.ResponseWriter, r *http.Request, s *site.Site) {
	path := r.URL.Path
	if path == s.SearchPath() {
		found, err := s.Search(r.URL.Query().Get("q"))
		if err != nil {
			h.logger.Error("search failed", "error", err)
			h.text(w, r, http.StatusInternalServerError, "the search failed\n")
			return
		}
		send(w, r, found)
		return
	}
	if found := s.Find(path); found != nil {
		send(w, r, found)
		return
	}
	if to, ok := s.Redirect(path); ok {
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		w.Header()["Location"] = []string{to}
		w.Header()["Cache-Control"] = noStore
		h.text(w, r, http.StatusTemporaryRedirect, "")
		return
	}
	send(w, r, s.NotFound())
}

// send writes a resource in an encoding that the request accepts.
func send(w http.ResponseWriter, r *http.Request, res *site.Resource) {
	e := &res.Plain
	if res.Gzip.Body.Size() > 0 && acceptsGzip(r.Header["Accept-Encoding"]) {
		e = &res.Gzip
	}
	header := w.Header()
	for i := range e.Headers {
		header[e.Headers[i].Key] = e.Headers[i].Values
	}
	if res.Status == http.StatusOK && matches(r.Header["If-None-Match"], e.Tag) {
		delete(header, "Content-Length")
		delete(header, "Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(res.Status)
	if r.Method == http.MethodHead {
		return
	}
	// An error means a broken connection, so it cannot be reported.
	c := connectionOf(r)
	if c == nil {
		_, _ = e.Body.WriteTo(w)
		return
	}
	c.holding = true
	_, _ = e.Body.WriteTo(w)
	_ = c.release()
}

// text responds with a line of plain text.
func (h *handler) text(w http.ResponseWriter, r *http.Request, status int, line string) {
	header := w.Header()
	site.Secure(header)
	header["Content-Type"] = textPlain
	header["Cache-Control"] = noStore
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(line))
	}
}
