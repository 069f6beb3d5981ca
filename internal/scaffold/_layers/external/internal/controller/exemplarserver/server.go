/*
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package exemplarserver is a store in memory, for the tests of the controller and for
// koboshi check. Replace it with a test server of the API that the controller uses.
package exemplarserver

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
)

// Server stores texts by name:
//
//	PUT /texts/NAME     stores the body of the request
//	GET /texts/NAME     returns the text, or 404
//	DELETE /texts/NAME  deletes the text, or returns 404
//	GET /texts          lists all texts, each in a line with its name
type Server struct {
	http.ServeMux

	mu    sync.Mutex
	texts map[string]string
	down  bool
}

// New returns a server without texts.
func New() *Server {
	s := &Server{texts: map[string]string{}}
	s.HandleFunc("GET /texts", s.list)
	s.HandleFunc("GET /texts/{name}", s.get)
	s.HandleFunc("PUT /texts/{name}", s.put)
	s.HandleFunc("DELETE /texts/{name}", s.delete)
	return s
}

// Text returns a text, or "".
func (s *Server) Text(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts[name]
}

// SetText changes a text as another client of the store would. An empty text is deleted.
func (s *Server) SetText(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts[name] = text; text == "" {
		delete(s.texts, name)
	}
}

// SetDown makes the server refuse all requests, or serve them again.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		http.Error(w, "the store is down", http.StatusServiceUnavailable)
		return
	}
	s.ServeMux.ServeHTTP(w, req)
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.texts)) {
		_, _ = fmt.Fprintln(w, name, s.texts[name])
	}
}

func (s *Server) get(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.texts[req.PathValue("name")]
	if !ok {
		http.NotFound(w, req)
		return
	}
	_, _ = io.WriteString(w, text)
}

func (s *Server) put(w http.ResponseWriter, req *http.Request) {
	text, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.SetText(req.PathValue("name"), string(text))
}

func (s *Server) delete(w http.ResponseWriter, req *http.Request) {
	name := req.PathValue("name")
	if s.Text(name) == "" {
		http.NotFound(w, req)
		return
	}
	s.SetText(name, "")
}
