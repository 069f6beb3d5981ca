// Package browser tests sites in a real Chromium. The sites are served by viewers in Pods.
// The tests visit sites with mouse and keyboard, with only the keyboard, on a narrow
// screen, and without JavaScript.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/operators/markdownview/test/chrome"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/rig"
)

const (
	patience      = 2 * time.Minute
	width, height = 1280, 800
)

var (
	browser *chrome.Browser
	// book is a site with one example of everything; guide is the handbook of this repository.
	book, guide string
)

func TestMain(m *testing.M) {
	if runtime.GOOS != "linux" {
		fmt.Fprintln(os.Stderr, "Pods can run as processes only on Linux: these tests are skipped")
		return
	}
	if err := suite(m); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func suite(m *testing.M) (err error) {
	ctx := context.Background()
	browser, err = chrome.Start(ctx, width, height)
	if errors.Is(err, chrome.ErrNotInstalled) && os.Getenv("CI") == "" {
		fmt.Fprintf(os.Stderr, "skipped: %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer browser.Stop()
	return rig.With(ctx, rig.Options{Log: os.Stderr}, func(world *rig.Rig) error {
		if err := publish(ctx, world); err != nil {
			return err
		}
		if m.Run() != 0 {
			return errors.New("the tests failed")
		}
		return nil
	})
}

func publish(ctx context.Context, world *rig.Rig) error {
	everything, err := rig.Files("testdata/book")
	if err != nil {
		return err
	}
	if book, err = world.Publish(ctx, patience, "book", everything); err != nil {
		return err
	}
	handbook, err := rig.Guide()
	if err != nil {
		return err
	}
	guide, err = world.Publish(ctx, patience, "guide", handbook)
	return err
}

// open opens a tab at an address.
func open(t *testing.T, address string) *chrome.Tab {
	t.Helper()
	tab, err := browser.Open(width, height)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tab.Close)
	ok(t, tab.Visit(address))
	return tab
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// value evaluates a JavaScript expression.
func value[T any](t *testing.T, tab *chrome.Tab, expression string) T {
	t.Helper()
	v, err := chrome.Evaluate[T](tab, expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// expectQuiet fails if the console has messages, or if a request left the site.
func expectQuiet(t *testing.T, tab *chrome.Tab, site string) {
	t.Helper()
	if problems := tab.Problems(); len(problems) > 0 {
		t.Errorf("the console has\n%s", strings.Join(problems, "\n"))
	}
	expectNoStrays(t, tab, site)
}

func expectNoStrays(t *testing.T, tab *chrome.Tab, site string) {
	t.Helper()
	strays, all, err := tab.Strays(site)
	ok(t, err)
	if len(strays) > 0 {
		t.Errorf("of %d requests these left the site: %q", all, strays)
	}
	if all == 0 {
		t.Error("there were no requests at all: the browser was not watched")
	}
}

// walk visits every page of a site by following the links to the next page, and calls look
// for each page.
func walk(t *testing.T, tab *chrome.Tab, site string, look func(address string)) {
	t.Helper()
	ok(t, tab.Visit(site))
	for pages := 1; ; pages++ {
		look(value[string](t, tab, `location.pathname`))
		next := value[string](t, tab, `document.querySelector('a[rel=next]')?.href || ''`)
		if next == "" {
			if want := value[int](t, tab, `new Set([...document.querySelectorAll('.mdv-nav a[href]')].map(a => a.pathname)).size`); pages < want-1 {
				t.Errorf("the next links lead to %d pages, but the navigation has %d", pages, want)
			}
			return
		}
		ok(t, tab.Visit(next))
	}
}
