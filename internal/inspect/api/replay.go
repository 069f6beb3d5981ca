package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Replayer sends the review of an entry again, and returns the entry in which it has recorded the
// answer. It fails if there is no process that could answer.
type Replayer func(ctx context.Context, of int64, review *trace.Review) (trace.Entry, error)

var errNoReplay = errors.New("this session cannot send calls of webhooks again; only a running koboshi dev can")

// offers reports whether reviews can be sent again.
func (s *Server) offers(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]bool{"offered": s.options.Replay != nil})
}

// replay sends a review again, and answers with the call of the webhook.
func (s *Server) replay(w http.ResponseWriter, r *http.Request) {
	if s.options.Replay == nil {
		fail(w, http.StatusNotFound, errNoReplay)
		return
	}
	query, err := parse(r.URL.Query())
	if err == nil && (query.Seq == 0 || query != inspect.Query{Seq: query.Seq}) {
		err = errors.New("replay takes the parameter seq, the number of an entry with the call of a webhook, and no other")
	}
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	var review *trace.Review
	s.options.Session.View(func(session *inspect.Session) { review, err = session.Review(query.Seq) })
	if err != nil {
		fail(w, http.StatusNotFound, err)
		return
	}
	entry, err := s.options.Replay(r.Context(), query.Seq, review)
	if err != nil {
		fail(w, http.StatusServiceUnavailable, errors.New(s.scrubbed(fmt.Sprintf("the call was not sent again: %v", err))))
		return
	}
	var body []byte
	s.options.Session.View(func(session *inspect.Session) { body, err = json.Marshal(session.Admission(&entry)) })
	if err != nil {
		fail(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(s.scrubbed(string(body))))
}

// Replay sends the review of an entry again to the manager of a running koboshi dev.
func (c *Client) Replay(ctx context.Context, seq int64) (*inspect.Admission, error) {
	response, err := c.do(ctx, http.MethodPost, fmt.Sprintf("/api/v1/replay?seq=%d", seq))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer inspect.Admission
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("reading the answer of the session: %w", err)
	}
	return &answer, nil
}
