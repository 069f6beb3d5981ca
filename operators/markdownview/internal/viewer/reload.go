package viewer

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/site"
)

// state is the state of the site for probes and the log.
type state struct {
	mu     sync.Mutex
	loaded time.Time
	hash   string
	pages  int
	failed int
	// problem explains why the newest state of the directory is not served.
	problem string
	reloads int
}

// ready reports whether there is a site to serve, and also returns details for the probe.
func (s *state) ready(stopping bool) (ok bool, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out strings.Builder
	word := "ready"
	switch {
	case stopping:
		word = "stopping"
	case s.hash == "":
		word = "not ready"
	}
	fmt.Fprintf(&out, "%s\n", word)
	if s.hash != "" {
		fmt.Fprintf(&out, "content %s\npages %d\npages_failed %d\nreloads %d\nloaded %s\n",
			s.hash, s.pages, s.failed, s.reloads, s.loaded.UTC().Format(time.RFC3339))
	}
	if s.problem != "" {
		fmt.Fprintf(&out, "problem %s\n", s.problem)
	}
	return word == "ready", out.String()
}

// loader updates the site when the directory changes.
type loader struct {
	directory directory
	options   site.Options
	site      *atomic.Pointer[site.Site]
	state     *state
	logger    *slog.Logger
	loaded    func()

	last *[32]byte // the fingerprint of the last files read
	hash [32]byte  // the hash of the last content, whether it was accepted or refused
	seen bool
}

// load reads the directory and replaces the site if the new content is good. load refuses new
// content for which the method worse returns an error.
func (l *loader) load() {
	started := time.Now()
	print, err := l.directory.fingerprint()
	if err == nil && l.last != nil && *l.last == print {
		l.accepted()
		return
	}
	snapshot, err := l.directory.read()
	if err != nil {
		l.refuse(err)
		return
	}
	l.last = &snapshot.print
	if l.seen && l.hash == snapshot.hash {
		l.accepted()
		return
	}
	l.hash, l.seen = snapshot.hash, true
	s, err := site.Build(snapshot.files, l.options)
	if err != nil {
		l.refuse(fmt.Errorf("%s: %w", l.directory.path, err))
		return
	}
	if err := l.worse(s); err != nil {
		l.refuse(err)
		return
	}
	l.swap(s, hex.EncodeToString(snapshot.hash[:8]), time.Since(started))
}

// worse returns an error if the new site has fatal problems and the current site has none.
// If there is no current site, worse accepts any site.
func (l *loader) worse(s *site.Site) error {
	fatal := s.Book.Fatal()
	old := l.site.Load()
	if len(fatal) == 0 || old == nil || len(old.Book.Fatal()) > 0 {
		return nil
	}
	p := fatal[0]
	return fmt.Errorf("%s line %d: %s", p.Path, p.Line, p.Message)
}

func (l *loader) swap(s *site.Site, hash string, took time.Duration) {
	// A client that gets the new site must not get the state of the old one afterwards.
	l.state.mu.Lock()
	l.site.Store(s)
	l.state.loaded, l.state.hash, l.state.problem = time.Now(), hash, ""
	l.state.pages, l.state.failed = len(s.Book.Pages), len(s.Failed)
	first := l.state.reloads == 0
	l.state.reloads++
	l.state.mu.Unlock()

	if l.loaded != nil {
		l.loaded()
	}
	l.logger.Info("serving", "content", hash, "pages", len(s.Book.Pages), "assets", len(s.Book.Assets), "took", took, "first", first)
	for _, err := range s.Failed {
		l.logger.Error("a page could not be rendered and shows its source", "error", err)
	}
	const mostTold = 50
	for i, p := range s.Book.Problems {
		if i == mostTold {
			l.logger.Warn("more problems", "left out", len(s.Book.Problems)-mostTold)
			break
		}
		l.logger.Warn("problem in the content", "path", p.Path, "line", p.Line, "problem", p.Message, "fatal", p.Fatal)
	}
}

// refuse keeps the current site and records why.
func (l *loader) refuse(err error) {
	l.state.mu.Lock()
	known := l.state.problem == err.Error()
	l.state.problem = err.Error()
	l.state.mu.Unlock()
	if known {
		return
	}
	kept := "nothing is served until the content can be read"
	if l.site.Load() != nil {
		kept = "the previous site"
	}
	l.logger.Error("the content is not served", "error", err, "kept", kept)
}

// accepted records that the content of the directory is unchanged, and clears the problem
// if this content is being served.
func (l *loader) accepted() {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	// Content that has been refused stays refused.
	if s := l.site.Load(); s != nil && hex.EncodeToString(l.hash[:8]) == l.state.hash {
		l.state.problem = ""
	}
}

// keep loads the directory whenever it changes, until the context ends. The watch starts before the
// first read, so that no change is missed.
func (l *loader) keep(ctx context.Context, rescan time.Duration) error {
	changes, err := watch(ctx, l.directory.path, l.logger)
	if err != nil && !errors.Is(err, context.Canceled) {
		l.logger.Warn("cannot watch for changes; periodic scans will find them later", "error", err, "every", rescan)
	}
	l.load()
	ticker := time.NewTicker(cmp.Or(rescan, 30*time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		case <-ticker.C:
		}
		l.load()
	}
}
