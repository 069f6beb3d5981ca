// Command mdbook replaces mdBook in tests. The replacement reports how it was started and which
// files it finds, but does not imitate the behavior of mdBook.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
)

// Seen is the response to every request.
type Seen struct {
	Args     []string          `json:"args"`
	Dir      string            `json:"dir"`
	ReadOnly bool              `json:"readOnly"`
	Writable bool              `json:"writable"`
	Files    map[string]string `json:"files"`
}

func main() {
	flags := flag.NewFlagSet("mdbook", flag.ContinueOnError)
	host := flags.String("hostname", "localhost", "address to listen on")
	port := flags.String("port", "3000", "port to listen on")
	if len(os.Args) < 2 || os.Args[1] != "serve" || flags.Parse(os.Args[2:]) != nil {
		slog.Error("this mdbook supports only serve", "args", os.Args)
		os.Exit(2)
	}
	server := &http.Server{Addr: *host + ":" + *port, Handler: http.HandlerFunc(answer)}
	slog.Error("serving", "error", server.ListenAndServe())
	os.Exit(1)
}

func answer(w http.ResponseWriter, _ *http.Request) {
	seen, err := look()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(seen) // the client may be gone
}

func look() (Seen, error) {
	seen := Seen{Args: os.Args[1:], Files: map[string]string{}}
	var err error
	if seen.Dir, err = os.Getwd(); err != nil {
		return seen, err
	}
	seen.ReadOnly = errors.Is(os.WriteFile("src/new.md", nil, 0o600), syscall.EROFS)
	seen.Writable = os.WriteFile("book.html", nil, 0o600) == nil
	// The files of a volume are in the directory to which this link leads.
	src := os.DirFS(filepath.Join("src", "..data"))
	err = fs.WalkDir(src, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(src, path)
		seen.Files[path] = string(text)
		return err
	})
	return seen, err
}
