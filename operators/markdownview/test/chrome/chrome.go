// Package chrome opens sites in a headless Chromium, and records console messages and
// requests.
package chrome

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/koboshi-dev/koboshi/operators/markdownview/test/rig"
)

const (
	// patience limits the time of each action in the browser.
	patience = time.Minute
	// startPatience limits the time that the browser takes to start.
	startPatience = 2 * time.Minute
)

// ErrNotInstalled reports that this machine has no Chromium.
var ErrNotInstalled = errors.New("chromium is not installed: install the Debian package chromium")

// Browser is a running Chromium.
type Browser struct {
	ctx  context.Context
	stop []context.CancelFunc
}

// Start starts the browser with a window of this size.
func Start(ctx context.Context, width, height int) (*Browser, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, ErrNotInstalled
	}
	// Scrollbars are not hidden, because they reveal a page that is too wide.
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.WindowSize(width, height),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("force-device-scale-factor", "1"))
	b := &Browser{}
	allocated, stop := chromedp.NewExecAllocator(ctx, options...)
	b.stop = append(b.stop, stop)
	b.ctx, stop = chromedp.NewContext(allocated)
	b.stop = append(b.stop, stop)
	started := make(chan error, 1)
	go func() { started <- chromedp.Do(b.ctx) }()
	select {
	case err = <-started:
	case <-time.After(startPatience):
		err = fmt.Errorf("the browser has not started after %v", startPatience)
	}
	if err != nil {
		b.Stop()
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	return b, nil
}

// Stop stops the browser.
func (b *Browser) Stop() {
	for _, stop := range slices.Backward(b.stop) {
		stop()
	}
}

// Tab is a tab that shares no storage with other tabs.
type Tab struct {
	ctx   context.Context
	close context.CancelFunc

	mu       sync.Mutex
	problems []string
	requests []string
}

// Open opens a tab of this size.
func (b *Browser) Open(width, height int64) (*Tab, error) {
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t := &Tab{ctx: ctx, close: cancel}
	err := chromedp.Listen(ctx, t.note)
	if err == nil {
		_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	}
	if err == nil {
		_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	}
	if err == nil {
		err = chromedp.Do(ctx, chromedp.EmulateViewport(width, height))
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("opening a tab: %w", err)
	}
	return t, nil
}

// Close closes the tab.
func (t *Tab) Close() { t.close() }

// note records a problem or a request that an event reports.
func (t *Tab) note(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		t.requests = append(t.requests, e.Request.URL)
	case *network.EventWebSocketCreated:
		t.requests = append(t.requests, e.URL)
	case *network.EventLoadingFailed:
		if e.BlockedReason != "" {
			t.problems = append(t.problems, fmt.Sprintf("a request was blocked: %s", e.BlockedReason))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			t.problems = append(t.problems, fmt.Sprintf("%s %s: %s (%s)", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventExceptionThrown:
		t.problems = append(t.problems, fmt.Sprintf("an exception: %s", e.ExceptionDetails.Text))
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			var said []string
			for _, arg := range e.Args {
				said = append(said, string(arg.Value)+arg.Description)
			}
			t.problems = append(t.problems, fmt.Sprintf("console.%s: %s", e.Type, strings.Join(said, " ")))
		}
	}
}

// Problems returns the errors and warnings of all pages so far, from scripts, requests and
// content policies.
func (t *Tab) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.problems)
}

// Strays returns the requests that did not go to the origin of a site, and also returns the number
// of all requests.
func (t *Tab) Strays(site string) (strays []string, all int, err error) {
	home, err := url.Parse(site)
	if err != nil {
		return nil, 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.requests {
		u, err := url.Parse(r)
		if err != nil || u.Scheme != "data" && r != "about:blank" && (u.Scheme != home.Scheme || u.Host != home.Host) {
			strays = append(strays, r)
		}
	}
	return strays, len(t.requests), nil
}

func (t *Tab) do(steps ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, steps...)
}

// Visit goes to an address and waits until the page is loaded.
func (t *Tab) Visit(address string) error {
	if err := t.do(chromedp.Navigate(address)); err != nil {
		return fmt.Errorf("visiting %s: %w", address, err)
	}
	return nil
}

// Click clicks on the first element that a CSS selector matches.
func (t *Tab) Click(selector string) error {
	if err := t.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)); err != nil {
		return fmt.Errorf("clicking %s: %w", selector, err)
	}
	return nil
}

// Press presses keys, one after the other, wherever the focus is. The names of keys come from
// chromedp's package kb. As on a keyboard, a key that the page handles does not insert a
// character; chromedp's own action would still insert it.
func (t *Tab) Press(keys string) error {
	for _, key := range keys {
		for _, event := range strokes(key) {
			if _, err := chromedp.Call(t.ctx, input.DispatchKeyEvent, *event); err != nil {
				return fmt.Errorf("pressing %q: %w", key, err)
			}
		}
	}
	return nil
}

// strokes returns the events of a key. The first event includes the text that the key
// inserts.
func strokes(key rune) []*input.DispatchKeyEventParams {
	events := kb.Encode(key)
	if len(events) == 3 {
		down, char := events[0], events[1]
		down.Type, down.Text, down.UnmodifiedText = input.DispatchKeyEventTypeKeyDown, char.Text, char.UnmodifiedText
		events = slices.Delete(events, 1, 2)
	}
	return events
}

// Await waits until a JavaScript expression is true.
func (t *Tab) Await(expression string) error {
	return rig.Await(t.ctx, patience, expression, func(context.Context) error {
		is, err := Evaluate[bool](t, "Boolean("+strings.TrimSpace(expression)+")")
		if err == nil && !is {
			at, _ := Evaluate[string](t, "location.href")
			err = fmt.Errorf("the expression is false at %s", at)
		}
		return err
	})
}

// Prefer emulates a system preference for a color scheme: light or dark.
func (t *Tab) Prefer(scheme string) error {
	_, err := chromedp.Call(t.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	return err
}

// WithoutScripts disables scripts.
func (t *Tab) WithoutScripts() error {
	_, err := chromedp.Call(t.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	return err
}

// Picture returns a screenshot of the tab as PNG.
func (t *Tab) Picture() ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}

// Evaluate returns the value of a JavaScript expression in the tab's page. It waits for
// promises.
func Evaluate[T any](t *Tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}
