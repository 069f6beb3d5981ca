// Package api serves the answers of a session, and the page that shows them, on loopback.
//
//	GET /                  the page; it has no data and needs no token
//	GET /api/v1/QUESTION   an answer as JSON; see inspect.Questions
//	GET /api/v1/events     server-sent events: "changed" with the number of the last entry
//	GET /api/v1/export     the complete session as a trace file
//	GET /api/v1/replay     whether reviews can be sent again
//	POST /api/v1/replay    sends the review of the entry seq again; the answer is that of
//	                       admissions, for this one call
//
// Parameters of a question: object, namespace, after, limit, offset, filter, from, to, seq. An
// error is {"error": TEXT}, with status 400 for a wrong parameter, 404 if the session does not
// contain what was asked for, and 503 if no manager runs that could answer a review.
//
// Each request for data needs the token, as "Authorization: Bearer TOKEN". The page gets the token
// from the fragment of its address, which a browser does not send. No other site may read anything:
// the server allows no origin but its own, and refuses names other than loopback addresses, so that
// an attacker's DNS name cannot be used to reach it.
package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/freeport"
	"github.com/koboshi-dev/koboshi/internal/inspect"
)

// Options configures a server.
type Options struct {
	// Session is what is shown.
	Session *inspect.Live
	// Page holds the files of the page; nil serves none.
	Page fs.FS
	// Scrub removes known secret values from everything that is sent; nil removes nothing.
	Scrub func(string) string
	// Replay sends recorded reviews again; it is nil if the session cannot do this.
	Replay Replayer
	// Port is the port on 127.0.0.1; 0 means a free one.
	Port int
}

// Server is a running server.
type Server struct {
	options Options
	token   string
	address string
	http    *http.Server
	done    chan struct{}
}

// Start serves until Stop is called or the context ends.
func Start(ctx context.Context, o Options) (*Server, error) {
	listener, err := freeport.Listen(o.Port)
	if err != nil {
		return nil, fmt.Errorf("starting the inspector: %w", err)
	}
	token := make([]byte, 16)
	rand.Read(token)
	s := &Server{options: o, token: hex.EncodeToString(token), address: listener.Addr().String(), done: make(chan struct{})}
	// Streams end with this context; Shutdown alone does not end them.
	ctx, cancel := context.WithCancel(ctx)
	s.http = &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	s.http.RegisterOnShutdown(cancel)
	go func() {
		defer close(s.done)
		defer cancel()
		_ = s.http.Serve(listener)
	}()
	context.AfterFunc(ctx, func() { _ = s.http.Close() })
	return s, nil
}

// URL returns the address of the page, with the token. It is secret.
func (s *Server) URL() string { return "http://" + s.address + "/#token=" + s.token }

// Stop ends the server and waits until it has ended.
func (s *Server) Stop() {
	_ = s.http.Close()
	<-s.done
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, q := range inspect.Questions {
		mux.HandleFunc("GET /api/v1/"+q.Name, s.guarded(func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, q) }))
	}
	mux.HandleFunc("GET /api/v1/events", s.guarded(s.events))
	mux.HandleFunc("GET /api/v1/export", s.guarded(s.export))
	mux.HandleFunc("GET /api/v1/replay", s.guarded(s.offers))
	mux.HandleFunc("POST /api/v1/replay", s.guarded(s.replay))
	if s.options.Page != nil {
		mux.Handle("GET /", http.FileServerFS(s.options.Page))
	}
	return s.local(mux)
}

// policy allows the page its own scripts, styles and data, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// local sets the headers of all answers, and refuses requests that do not come from this
// machine's own pages and programs.
func (s *Server) local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !isLoopback(r.Host) {
			fail(w, http.StatusForbidden, errors.New("only a loopback address may be used as the name of this server"))
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
			fail(w, http.StatusForbidden, errors.New("requests of other sites are refused"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	address, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return name == "localhost" || err == nil && address.IsLoopback()
}

// guarded refuses requests without the token.
func (s *Server) guarded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) != 1 {
			fail(w, http.StatusUnauthorized, errors.New("the token is missing or wrong; use the address that the session printed"))
			return
		}
		next(w, r)
	}
}

func fail(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}

// answer sends the answer to a question.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, q inspect.Question) {
	query, err := parse(r.URL.Query())
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	var body []byte
	s.options.Session.View(func(session *inspect.Session) {
		var answer any
		if answer, err = session.Answer(q, query); err == nil {
			body, err = json.Marshal(answer)
		}
	})
	if err != nil {
		fail(w, http.StatusNotFound, errors.New(s.scrubbed(err.Error())))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(s.scrubbed(string(body))))
}

func (s *Server) scrubbed(text string) string {
	if s.options.Scrub == nil {
		return text
	}
	return s.options.Scrub(text)
}

// parse reads the parameters of a question.
func parse(values url.Values) (q inspect.Query, err error) {
	numbers := map[string]func(int64){
		"after": func(n int64) { q.After = n }, "seq": func(n int64) { q.Seq = n },
		"from": func(n int64) { q.From = n }, "to": func(n int64) { q.To = n },
		"limit": func(n int64) { q.Limit = int(n) }, "offset": func(n int64) { q.Offset = int(n) },
	}
	texts := map[string]*string{"object": &q.Object, "namespace": &q.Namespace, "filter": &q.Filter}
	for name, list := range values {
		value := list[len(list)-1]
		if text := texts[name]; text != nil {
			*text = value
			continue
		}
		set := numbers[name]
		if set == nil {
			return q, fmt.Errorf("unknown parameter %q; see docs/guide/project/inspect.md for the parameters", name)
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return q, fmt.Errorf("%s=%q is not a number that is 0 or more", name, value)
		}
		set(n)
	}
	return q, nil
}

// Encode returns the parameters of a query for a URL.
func Encode(q inspect.Query) string {
	values := url.Values{}
	for name, text := range map[string]string{"object": q.Object, "namespace": q.Namespace, "filter": q.Filter} {
		if text != "" {
			values.Set(name, text)
		}
	}
	for name, n := range map[string]int64{"after": q.After, "seq": q.Seq, "from": q.From, "to": q.To, "limit": int64(q.Limit), "offset": int64(q.Offset)} {
		if n != 0 {
			values.Set(name, strconv.FormatInt(n, 10))
		}
	}
	return values.Encode()
}

const (
	// between is the minimum time between two events, and beat the maximum, because whether a
	// reconcile is over also depends on the time.
	between = 200 * time.Millisecond
	beat    = time.Second
)

// events sends an event whenever the session may have changed.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for {
		changed := s.options.Session.Changed()
		var last int64
		s.options.Session.View(func(session *inspect.Session) { last = session.Last() })
		if _, err := fmt.Fprintf(w, "event: changed\ndata: {\"seq\":%d}\n\n", last); err != nil {
			return
		}
		if out.Flush() != nil || !wait(r.Context(), nil, between) || !wait(r.Context(), changed, beat) {
			return
		}
	}
}

// wait waits for a change, but at most for the time most. It reports false when the context ends.
func wait(ctx context.Context, changed <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timer.C:
	}
	return true
}

func (s *Server) export(w http.ResponseWriter, _ *http.Request) {
	var out bytes.Buffer
	var err error
	s.options.Session.View(func(session *inspect.Session) { err = session.Write(&out) })
	if err != nil {
		fail(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="session.trace.jsonl"`)
	for line := range slices.Values(bytes.SplitAfter(out.Bytes(), []byte("\n"))) {
		if _, err := w.Write([]byte(s.scrubbed(string(line)))); err != nil {
			return
		}
	}
}
