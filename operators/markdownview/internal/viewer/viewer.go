// Package viewer serves a directory of Markdown as a site.
//
//	directory ──► snapshot ──► site.Build ──► current Site ──► requests
//	    ▲                          │
//	    └── changed? ◄─────────────┘ a worse state is refused, the old one stays
//
// Its life:
//
//	start ──► loading ──► ready ──► draining ──► stopped
//	             │                     ▲
//	             └─────────────────────┘ SIGTERM
//
// While it drains, it is not ready, still answers, and closes each connection
// with its answer; then it takes no more, finishes what it has begun, and ends.
package viewer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/site"
)

// Options are what a viewer is told.
type Options struct {
	// Content is the directory.
	Content string
	Site    site.Options
	// Rescan is how often the directory is looked at where no change was seen;
	// 0 means 30 s.
	Rescan time.Duration
	// Drain is how long to go on taking connections after the end of the context:
	// as long as it may take every proxy to hear of it. Readers who keep a
	// connection are sent elsewhere by then, with their next answer.
	Drain time.Duration
	// ShutdownGrace is the most time between the end of the context and the end of
	// the viewer; 0 means 20 s.
	ShutdownGrace time.Duration
	// Loaded is called after each load of a new state; nil means nothing.
	Loaded func()
	// AccessLog logs each request.
	AccessLog bool
	// Logger; nil means none.
	Logger *slog.Logger
}

// What one client may take. A reader on a slow line gets a page of a megabyte at
// 150 kbit/s; who is slower than that on purpose is cut off.
const (
	headerTimeout   = 10 * time.Second
	writeTimeout    = time.Minute
	idleTimeout     = 75 * time.Second
	mostHeaderBytes = 16 << 10
	mostConnections = 4096
	longestDrain    = 2 * time.Second
	defaultGrace    = 20 * time.Second
)

// Viewer serves one directory.
type Viewer struct {
	options  Options
	site     atomic.Pointer[site.Site]
	state    state
	draining atomic.Bool
	handler  http.Handler
	loader   *loader
}

// New makes a viewer of a directory; it reads nothing yet.
func New(o Options) (*Viewer, error) {
	var err error
	if o.Site, err = o.Site.Complete(); err != nil {
		return nil, err
	}
	if o.Content == "" {
		return nil, errors.New("no content directory; name it with --content")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ShutdownGrace == 0 {
		o.ShutdownGrace = defaultGrace
	}
	v := &Viewer{options: o}
	v.loader = &loader{
		directory: directory{path: o.Content, logger: o.Logger}, options: o.Site,
		site: &v.site, state: &v.state, logger: o.Logger, loaded: o.Loaded,
	}
	v.handler = &handler{site: &v.site, state: &v.state, base: o.Site.BasePath, draining: &v.draining, logger: o.Logger}
	if o.AccessLog {
		v.handler = logged(v.handler, o.Logger)
	}
	return v, nil
}

// Handler is the site's HTTP side.
func (v *Viewer) Handler() http.Handler { return v.handler }

// Run serves on the listener until the context ends, and closes it.
func (v *Viewer) Run(ctx context.Context, listener net.Listener) error {
	var open connections
	server := &http.Server{
		Handler:           v.handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       headerTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    mostHeaderBytes,
		ConnState:         open.observe,
		ConnContext:       withConnection,
		ErrorLog:          slog.NewLogLogger(v.options.Logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(limit(listener, mostConnections)) }()

	watching, stop := context.WithCancel(ctx)
	kept := make(chan error, 1)
	go func() { kept <- v.loader.keep(watching, v.options.Rescan) }()
	var err error
	select {
	case err = <-served:
		err = fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
		err = v.shutdown(server, &open)
	}
	stop()
	return errors.Join(err, <-kept)
}

// shutdown stops without losing a request. A client that sends on a connection
// just as it is closed cannot know whether its request was read; so connections
// are closed with an answer, and only those that stay silent without one.
func (v *Viewer) shutdown(server *http.Server, open *connections) error {
	started := time.Now()
	v.draining.Store(true)
	v.options.Logger.Info("stopping", "connections", open.count())
	<-time.After(min(v.options.Drain, v.options.ShutdownGrace/2))
	open.drained(min(longestDrain, v.options.ShutdownGrace/4))

	ctx, cancel := context.WithDeadline(context.Background(), started.Add(v.options.ShutdownGrace))
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		v.options.Logger.Warn("requests were cut off", "connections", open.count(), "grace", v.options.ShutdownGrace)
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("stopping: %w", err)
	}
	v.options.Logger.Info("stopped", "took", time.Since(started))
	return nil
}
