// Package watch notices that files in some folders may have changed.
//
// It gives hints, and no more: a hint may be wrong, and one hint may stand for many changes.
// The receiver finds out what has changed.
package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// quiet is the time without an event after which a hint is given. Editors save a file in
	// several steps, and tools write several files.
	quiet = 25 * time.Millisecond
	// atMost limits how long a hint is delayed while events keep arriving.
	atMost = 250 * time.Millisecond
	// poll is the time between hints if the system cannot watch the folders.
	poll = time.Second
)

// Watcher watches folders.
type Watcher struct {
	hints   chan struct{}
	folders func() ([]string, error)
	events  *fsnotify.Watcher // nil if the system cannot watch
	watched map[string]bool
	ended   chan struct{}
}

// Start watches the folders that the function returns, until ctx ends. It calls the function
// again when a folder may have been added. If the system cannot watch the folders, Start
// returns a watcher that gives a hint every second, and the reason.
func Start(ctx context.Context, folders func() ([]string, error)) (*Watcher, error) {
	w := &Watcher{hints: make(chan struct{}, 1), folders: folders, watched: map[string]bool{}, ended: make(chan struct{})}
	var err error
	if w.events, err = fsnotify.NewWatcher(); err == nil {
		err = w.add()
	}
	if err != nil {
		w.giveUp()
		err = fmt.Errorf("watching the project's folders: %w; they are read every second instead", err)
	}
	go w.run(ctx)
	return w, err
}

// Hints returns the channel of hints. A hint stays in the channel until it is received.
func (w *Watcher) Hints() <-chan struct{} { return w.hints }

// Ended returns a channel that is closed when the watcher has ended.
func (w *Watcher) Ended() <-chan struct{} { return w.ended }

// giveUp continues without events.
func (w *Watcher) giveUp() {
	if w.events != nil {
		_ = w.events.Close()
		w.events = nil
	}
}

// add watches the folders that are not watched yet.
func (w *Watcher) add() error {
	all, err := w.folders()
	if err != nil {
		return err
	}
	for _, folder := range all {
		if w.watched[folder] {
			continue
		}
		if err := w.events.Add(folder); err != nil {
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
				continue
			}
			return err
		}
		w.watched[folder] = true
	}
	return nil
}

func (w *Watcher) run(ctx context.Context) {
	defer close(w.ended)
	for w.events != nil && ctx.Err() == nil {
		w.settle(ctx)
	}
	if w.events != nil {
		_ = w.events.Close()
		return
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.hint()
		case <-ctx.Done():
			return
		}
	}
}

// settle waits for an event and those that follow it, and gives a hint.
func (w *Watcher) settle(ctx context.Context) {
	if !w.next(ctx, nil) {
		return
	}
	for first, more := time.Now(), true; more; {
		pause := time.NewTimer(min(quiet, atMost-time.Since(first)))
		more = w.next(ctx, pause.C)
		pause.Stop()
	}
	// Files may have been written to a new folder before it was watched, so the hint is given
	// afterwards.
	if w.events != nil && w.add() != nil {
		w.giveUp()
	}
	w.hint()
}

// next waits for an event, and reports false if none arrives in time.
func (w *Watcher) next(ctx context.Context, over <-chan time.Time) bool {
	for w.events != nil {
		select {
		case event, ok := <-w.events.Events:
			if !ok {
				return false
			}
			if event.Op == fsnotify.Chmod {
				continue // reading a file may cause it
			}
			if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
				w.forget(event.Name) // a folder of this name may be created again
			}
			return true
		case _, open := <-w.events.Errors:
			return open // events have been lost
		case <-over:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// forget removes a folder and those below it, which are no longer watched under these names.
func (w *Watcher) forget(folder string) {
	maps.DeleteFunc(w.watched, func(known string, _ bool) bool {
		return known == folder || strings.HasPrefix(known, folder+string(os.PathSeparator))
	})
}

func (w *Watcher) hint() {
	select {
	case w.hints <- struct{}{}:
	default: // a hint is waiting already
	}
}
