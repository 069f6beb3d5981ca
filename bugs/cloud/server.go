// Package cloud is a minimal provider of volumes outside the cluster, as awkward as real
// providers: a client learns the ID of a new volume only from the response, and two
// requests to create a volume create two volumes.
//
//	POST   /volumes          {"name": …, "size": …} -> the volume, with its ID
//	GET    /volumes?name=…   all volumes, or the volumes with that name
//	GET    /volumes/ID
//	DELETE /volumes/ID
package cloud

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// Volume is a volume.
type Volume struct {
	ID string `json:"id"`
	// Name is chosen by the client, and need not be unique.
	Name string `json:"name"`
	Size int    `json:"size"`
}

// Server keeps volumes in memory. Its zero value is ready to use.
type Server struct {
	mu      sync.Mutex
	made    int
	volumes []Volume
}

// Handler answers requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /volumes", s.create)
	mux.HandleFunc("GET /volumes", s.list)
	mux.HandleFunc("GET /volumes/{id}", s.get)
	mux.HandleFunc("DELETE /volumes/{id}", s.delete)
	return mux
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var v Volume
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		http.Error(w, "reading a volume: "+err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.made++
	v.ID = fmt.Sprintf("vol-%04d", s.made)
	s.volumes = append(s.volumes, v)
	s.mu.Unlock()
	answer(w, http.StatusCreated, v)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []Volume{}
	for _, v := range s.volumes {
		if name == "" || v.Name == name {
			found = append(found, v)
		}
	}
	answer(w, http.StatusOK, found)
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.index(r.PathValue("id"))
	if i < 0 {
		http.Error(w, "no such volume", http.StatusNotFound)
		return
	}
	answer(w, http.StatusOK, s.volumes[i])
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.index(r.PathValue("id"))
	if i < 0 {
		http.Error(w, "no such volume", http.StatusNotFound)
		return
	}
	s.volumes = slices.Delete(s.volumes, i, i+1)
	w.WriteHeader(http.StatusNoContent)
}

// index returns the index of the volume, or -1. The caller holds the lock.
func (s *Server) index(id string) int {
	return slices.IndexFunc(s.volumes, func(v Volume) bool { return v.ID == id })
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}
