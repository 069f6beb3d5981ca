// Command screenshot takes a picture of the home page of this repository's handbook, as a
// MarkdownView serves it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/operators/markdownview/test/chrome"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/rig"
)

const (
	width, height = 1280, 800
	patience      = 2 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	path := flag.String("o", "", "the `file` to write, a PNG")
	scheme := flag.String("scheme", "light", "the color scheme: light or dark")
	flag.Parse()
	err := run(ctx, *path, *scheme)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "screenshot:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path, scheme string) error {
	if path == "" {
		return fmt.Errorf("no output file: set it with -o")
	}
	guide, err := rig.Guide()
	if err != nil {
		return err
	}
	return rig.With(ctx, rig.Options{Log: os.Stderr}, func(world *rig.Rig) error {
		site, err := world.Publish(ctx, patience, "guide", guide)
		if err != nil {
			return err
		}
		picture, err := take(ctx, site, scheme)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, picture, 0o644)
	})
}

func take(ctx context.Context, site, scheme string) ([]byte, error) {
	browser, err := chrome.Start(ctx, width, height)
	if err != nil {
		return nil, err
	}
	defer browser.Stop()
	tab, err := browser.Open(width, height)
	if err != nil {
		return nil, err
	}
	defer tab.Close()
	if err := tab.Prefer(scheme); err != nil {
		return nil, err
	}
	if err := tab.Visit(site); err != nil {
		return nil, err
	}
	if err := tab.Await(`document.readyState === 'complete' && [...document.images].every((i) => i.complete)`); err != nil {
		return nil, err
	}
	return tab.Picture()
}
