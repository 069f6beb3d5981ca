package actions

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
)

// hub stands for GitHub's API: the comments of the pull request 7.
type hub struct {
	address string

	mu       sync.Mutex
	comments []comment
	// refuse is the status with which writing is refused, or 0.
	refuse   int
	requests []string // methods and paths
}

type comment struct {
	ID   int    `json:"id"`
	Body string `json:"body"`
	URL  string `json:"html_url"`
	User struct {
		Type string `json:"type"`
	} `json:"user"`
}

// secret is the token of the job.
const secret = "ghs_example"

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{comments: []comment{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /repos/team/operator/issues/7/comments", h.list)
	mux.HandleFunc("POST /repos/team/operator/issues/7/comments", h.save)
	mux.HandleFunc("PATCH /repos/team/operator/issues/comments/{id}", h.save)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.requests = append(h.requests, r.Method+" "+r.URL.Path)
		if r.Header.Get("Authorization") != "Bearer "+secret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	h.address = server.URL
	return h
}

// newPage returns the address of a server that answers every request with one text, like a proxy.
func newPage(t *testing.T, text string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
	t.Cleanup(server.Close)
	return server.URL
}

func (h *hub) add(author, body string) {
	c := comment{ID: 100 + len(h.comments), Body: body, URL: "https://github.example/comment"}
	c.User.Type = author
	h.comments = append(h.comments, c)
}

func (h *hub) list(w http.ResponseWriter, r *http.Request) {
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	from := min(size*(page-1), len(h.comments))
	answer(w, http.StatusOK, h.comments[from:min(from+size, len(h.comments))])
}

func (h *hub) save(w http.ResponseWriter, r *http.Request) {
	var given struct{ Body string }
	switch err := json.NewDecoder(r.Body).Decode(&given); {
	case h.refuse != 0:
		answer(w, h.refuse, map[string]string{"message": "Resource not accessible by integration"})
		return
	case err != nil:
		answer(w, http.StatusBadRequest, map[string]string{"message": err.Error()})
		return
	case len([]rune(given.Body)) > 65536:
		answer(w, http.StatusUnprocessableEntity, map[string]string{"message": "Body is too long (maximum is 65536 characters)"})
		return
	case r.Method == http.MethodPost:
		h.add("Bot", given.Body)
		answer(w, http.StatusCreated, h.comments[len(h.comments)-1])
		return
	}
	for i := range h.comments {
		if fmt.Sprint(h.comments[i].ID) == r.PathValue("id") {
			h.comments[i].Body = given.Body
			answer(w, http.StatusOK, h.comments[i])
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
