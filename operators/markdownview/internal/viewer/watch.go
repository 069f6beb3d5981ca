package viewer

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// An editor or git writes many files in a row. A change is therefore loaded once the
// directory has been unchanged for the time quiet, or at the latest after the time
// patience.
const (
	quiet    = 100 * time.Millisecond
	patience = time.Second
)

// watch returns a channel that receives a value after the directory has changed. A swap of the link
// ..data of a volume is noticed, because the link is in the directory itself.
func watch(ctx context.Context, dir string, logger *slog.Logger) (<-chan struct{}, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", dir, err)
	}
	// If dir is a link, its target is watched, with everything below it. If the link itself
	// changes later, only a scan notices the change.
	at, err := filepath.EvalSymlinks(dir)
	if err == nil {
		err = add(watcher, at)
	}
	if err != nil {
		_ = watcher.Close()
		return nil, fmt.Errorf("watching %s: %w", dir, err)
	}
	changes := make(chan struct{}, 1)
	go func() {
		defer func() { _ = watcher.Close() }()
		var settle <-chan time.Time
		var since time.Time
		for {
			select {
			case <-ctx.Done():
				return
			case event := <-watcher.Events:
				if event.Has(fsnotify.Create) && !strings.HasPrefix(filepath.Base(event.Name), ".") {
					// A new directory needs watches of its own. A new file needs no watch,
					// because its directory is watched.
					if err := add(watcher, event.Name); err != nil {
						logger.Debug("not watched", "path", event.Name, "error", err)
					}
				}
				if settle == nil {
					since = time.Now()
				}
				settle = time.After(max(0, min(quiet, patience-time.Since(since))))
			case err := <-watcher.Errors:
				logger.Warn("watching the content", "error", err)
				settle = time.After(quiet)
			case <-settle:
				settle = nil
				select {
				case changes <- struct{}{}:
				default: // a value is already waiting
				}
			}
		}
	}()
	return changes, nil
}

// add watches a directory and its subdirectories, except hidden ones, which hold no content.
func add(watcher *fsnotify.Watcher, dir string) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && name == dir:
			return err
		case err != nil:
			return nil // it was deleted, and the deletion causes an event
		case !entry.IsDir():
			return nil
		case name != dir && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		}
		return watcher.Add(name)
	})
}
