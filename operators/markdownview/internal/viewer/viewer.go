// Package viewer serves a directory of Markdown as a site.
//
//	directory ──► snapshot ──► site.Build ──► current Site ──► requests
//	    ▲                          │
//	    └── changed? ◄─────────────┘ a worse state is refused; the old one stays
//
// Its life cycle:
//
//	start ──► loading ──► ready ──► draining ──► stopped
//	             │                     ▲
//	             └─────────────────────┘ SIGTERM
//
// While the viewer drains, it is not ready but still responds, and it closes each
// connection after its response. After draining, the viewer accepts no more connections,
// finishes running requests, and exits.
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

// Options configure a viewer.
type Options struct {
	// Content is the directory to serve.
	Content string
	Site    site.Options
	// Rescan is the interval of scans for changes that the watch missed; 0 means 30 s.
	Rescan time.Duration
	// Drain is the time for which the viewer accepts connections after the context ends,
	// so that every proxy can notice the shutdown. The next response on each open
	// connection tells the client to reconnect.
	Drain time.Duration
	// ShutdownGrace is the maximum time between the end of the context and the exit of the
	// viewer; 0 means 20 s.
	ShutdownGrace time.Duration
	// Loaded, if not nil, is called each time a new state has been loaded.
	Loaded func()
	// AccessLog enables a log of requests.
	AccessLog bool
	// Logger receives the log; nil discards it.
	Logger *slog.Logger
}

// Limits of clients. At 150 kbit/s, a client still receives a page of one megabyte; slower
// clients are disconnected.
const (
	headerTimeout   = 10 * time.Second
	writeTimeout    = time.Minute
	idleTimeout     = 75 * time.Second
	mostHeaderBytes = 16 << 10
	mostConnections = 4096
	longestDrain    = 2 * time.Second
	defaultGrace    = 20 * time.Second
)

// Viewer serves one directory as a site.
type Viewer struct {
	options  Options
	site     atomic.Pointer[site.Site]
	state    state
	draining atomic.Bool
	handler  http.Handler
	loader   *loader
}

// New returns a viewer for a directory. It reads nothing yet.
func New(o Options) (*Viewer, error) {
	var err error
	if o.Site, err = o.Site.Complete(); err != nil {
		return nil, err
	}
	if o.Content == "" {
		return nil, errors.New("the content directory is missing; set it with --content")
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

// Handler returns the handler for requests to the site.
func (v *Viewer) Handler() http.Handler { return v.handler }

// Run serves on the listener until the context ends, and closes the listener.
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

// shutdown stops the server without losing a request. If a connection is closed while a
// client sends a request, the client cannot know whether the request was read. The viewer
// therefore closes a connection after a response, or while the connection is idle.
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
