package countstore

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Addresses are the addresses of a running store, read from its ready file.
type Addresses struct {
	// Endpoint is the URL of the S3 API.
	Endpoint string `json:"endpoint"`
	// Control is the URL of the handler that Server.Control returns.
	Control string `json:"control"`
}

// Control returns the handler with which the bench controls the store. It is served on
// a separate port and has PUT /down, PUT /up and GET /journal.
func (s *Server) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /down", func(http.ResponseWriter, *http.Request) { s.conns.setDown(true) })
	mux.HandleFunc("PUT /up", func(http.ResponseWriter, *http.Request) { s.conns.setDown(false) })
	mux.HandleFunc("GET /journal", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(s.journal.from(0))
	})
	return mux
}

// Steer is a client of the handler that Server.Control returns.
type Steer struct{ Addresses }

// Down makes the store reset all connections, including the open ones.
func (s Steer) Down(ctx context.Context) error { return s.do(ctx, http.MethodPut, "/down", nil) }

// Up makes the store answer again.
func (s Steer) Up(ctx context.Context) error { return s.do(ctx, http.MethodPut, "/up", nil) }

// Journal returns all requests that have arrived so far.
func (s Steer) Journal(ctx context.Context) (all []Arrival, err error) {
	err = s.do(ctx, http.MethodGet, "/journal", &all)
	return all, err
}

func (s Steer) do(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.Control+path, nil)
	if err != nil {
		return fmt.Errorf("requesting %s from the store: %w", path, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("requesting %s from the store: %w", path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		return fmt.Errorf("requesting %s from the store: %s: %s", path, resp.Status, strings.TrimSpace(string(text)))
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("reading the store's response to %s: %w", path, err)
	}
	return nil
}
