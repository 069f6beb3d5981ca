// Command viewer serves a directory of Markdown as a documentation site.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/site"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/viewer"
)

func main() {
	shareProcessors()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		slog.New(slog.NewJSONHandler(os.Stderr, nil)).Error("viewer failed", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("viewer", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var o viewer.Options
	var listen, theme, url string
	var limit time.Duration
	flags.StringVar(&o.Content, "content", "", "the `directory` with the Markdown files to serve")
	flags.StringVar(&listen, "listen", ":8080", "the `address` to listen on; with port 0, the viewer listens on a free port and logs its address")
	flags.StringVar(&o.Site.BasePath, "base-path", "/", "the `path` below which the site is served, such as /handbook/")
	flags.StringVar(&o.Site.Title, "title", "", "the `title` of the site (default: the title of the book)")
	flags.StringVar(&o.Site.Language, "language", "en", "the BCP 47 `tag` of the site's language, such as ja; the viewer's own texts are available in en and ja")
	flags.StringVar(&theme, "theme", string(site.ThemeAuto), "the color scheme for readers who have not chosen one: auto, light or dark")
	flags.DurationVar(&o.Drain, "drain", 0, "how long to keep accepting connections after SIGTERM, while proxies may still send requests to this viewer")
	flags.DurationVar(&o.ShutdownGrace, "shutdown-grace", 20*time.Second, "the maximum `time` between SIGTERM and exit")
	flags.DurationVar(&o.Rescan, "rescan", 30*time.Second, "interval between scans for changes that the kernel did not report")
	flags.BoolVar(&o.AccessLog, "access-log", false, "log each request")
	flags.StringVar(&url, "await", "", "serve nothing, but wait until this `URL` returns status 200")
	flags.DurationVar(&limit, "await-limit", 2*time.Minute, "the maximum time that -await waits")
	if err := flags.Parse(args); err != nil {
		return flag.ErrHelp // Parse has already reported the error
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not a flag; see --help", flags.Arg(0))
	}
	if url != "" {
		return await(ctx, url, limit)
	}
	o.Site.Theme = site.Theme(theme)
	o.Loaded = settleMemory
	o.Logger = slog.New(slog.NewJSONHandler(stderr, nil))
	v, err := viewer.New(o)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listening: %w; choose another address with --listen", err)
	}
	o.Logger.Info("listening", "address", listener.Addr().String(), "basePath", o.Site.BasePath)
	return v.Run(ctx, listener)
}
