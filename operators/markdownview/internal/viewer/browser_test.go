package viewer_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/viewer"
)

// browser is a Chromium with one open site, and the errors that it has reported.
type browser struct {
	*testing.T
	ctx    context.Context
	url    string
	mu     sync.Mutex
	faults []string
}

// open starts a headless Chromium. If Chromium is not installed, the test is skipped; CI
// installs it.
func open(t *testing.T, site string) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium here: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(1400, 900))
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &browser{T: t, ctx: ctx, url: site}
	b.do(chromedp.Navigate("about:blank"))
	b.ctx, cancel = context.WithTimeout(ctx, 90*time.Second)
	t.Cleanup(cancel)
	observe(b, network.RequestWillBeSent, func(e network.EventRequestWillBeSent) string {
		if u := e.Request.URL; strings.HasPrefix(u, b.url) || strings.HasPrefix(u, "data:") {
			return ""
		}
		return "a request to " + e.Request.URL
	})
	observe(b, log.EntryAdded, func(e log.EventEntryAdded) string {
		if strings.Contains(e.Entry.Text, "404") {
			return "" // the browser reports the page that is not found, too
		}
		return "the console: " + e.Entry.Text + " " + e.Entry.URL
	})
	observe(b, runtime.ExceptionThrown, func(e runtime.EventExceptionThrown) string {
		return "an exception: " + e.ExceptionDetails.Text
	})
	observe(b, runtime.ConsoleAPICalled, func(runtime.EventConsoleAPICalled) string {
		return "something was written to the console"
	})
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	call(b, runtime.Enable, cdp.Empty{})
	return b
}

// observe collects errors from events.
func observe[E any](b *browser, event cdp.Event[E], fault func(E) string) {
	events := chromedp.Events(b.ctx, event)
	go func() {
		for e, err := range events {
			if err != nil {
				return
			}
			if f := fault(e); f != "" {
				b.mu.Lock()
				b.faults = append(b.faults, f)
				b.mu.Unlock()
			}
		}
	}()
}

func call[P, R any](b *browser, command cdp.Command[P, R], params P) {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.Fatal(err)
	}
}

// taken returns the errors since the last call.
func (b *browser) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	faults := b.faults
	b.faults = nil
	return faults
}

// step runs a subtest in the same browser.
func (b *browser) step(name string, f func()) {
	outer := b.T
	outer.Run(name, func(t *testing.T) {
		b.T = t
		f()
	})
	b.T = outer
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

func (b *browser) value(expression string) string {
	b.Helper()
	// Evaluation fails while the browser changes pages.
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		return err.Error()
	}
	return out
}

// location returns the address of the page without using a script, or "" while the browser changes
// pages.
func (b *browser) location() string {
	at, err := chromedp.Run(b.ctx, chromedp.Location())
	if err != nil {
		return ""
	}
	return at
}

func (b *browser) until(expression, want string) {
	b.Helper()
	last := ""
	defer func() {
		if b.Failed() {
			b.Logf("%s is %q", expression, last)
		}
	}()
	until(b, expression+" to be "+want, func() bool {
		last = b.value(expression)
		return last == want
	})
}

// arrived waits until a page is shown and its script, which runs last, has finished.
func (b *browser) arrived(at string) {
	b.Helper()
	b.until("location.pathname + location.hash", at)
	b.until("document.querySelector('.mdv-theme').hidden", "false")
}

// shot saves a screenshot if SCREENSHOTS names a directory.
func (b *browser) shot(name string) {
	b.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		b.Fatal(err)
	}
}

var tour = map[string]string{
	"SUMMARY.md": "# The tour\n\n[Start](README.md)\n\n- [Install](guide/install.md)\n  - [Linux](guide/linux.md)\n- [Not yet]()\n- [End](end.md)\n",
	"README.md": "# Start\n\nHello.\n\n> [!TIP]\n> Press <kbd>/</kbd>.\n\n```go\nfunc main() { println(\"" + strings.Repeat("long ", 40) + "\") }\n```\n\n" +
		"| " + strings.Repeat("wide column | ", 12) + "\n|" + strings.Repeat("---|", 12) + "\n| " + strings.Repeat("cell | ", 12) + "\n\n" +
		"<script>document.title = 'run'</script><img src=x onerror=\"document.title='run'\"><svg onload=\"document.title='run'\"></svg>\n\n![p](p.svg) ![outside](https://outside.example/a.png)\n\n" +
		"averyveryveryveryveryveryveryveryveryveryveryveryveryveryverylongwordwithoutanybreak\n",
	"guide/install.md": "# Install\n\n## From source\n\nType make, then look for the zebra.\n\n" + strings.Repeat("More text.\n\n", 60) + "## From a package\n\nType apt.\n",
	"guide/linux.md":   "# Linux\n\nA kernel.\n",
	"end.md":           "# End\n\nBye.\n",
	"p.svg":            `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><rect width="40" height="20" fill="teal"/></svg>`,
}

func TestTheSiteInARealBrowser(t *testing.T) {
	r := start(t, viewer.Options{Content: content(t, tour)})
	ready(t, r)
	b := open(t, r.url)
	b.do(chromedp.Navigate(r.url + "/"))

	b.step("a script in a page does not run", func() {
		b.until("document.title", "Start · The tour")
	})
	b.step("the navigation leads to pages", func() {
		b.shot("home")
		b.do(chromedp.Click(chromedp.CSS(`.mdv-nav a[href="/guide/linux.html"]`)))
		b.until("document.querySelector('.mdv-nav [aria-current]').textContent", "1.1. Linux")
	})
	b.step("arrow keys turn pages", func() {
		b.arrived("/guide/linux.html")
		b.do(chromedp.KeyEvent(kb.ArrowLeft))
		b.arrived("/guide/install.html")
		b.do(chromedp.KeyEvent(kb.ArrowRight))
		b.arrived("/guide/linux.html")
	})
	b.step("a search by keys finds a section", func() { searchByKeys(b) })
	b.step("the dark theme is chosen and remembered", func() { chooseTheme(b) })
	b.step("no page is wider than 360 pixels", func() { narrow(b) })

	for _, fault := range b.taken() {
		t.Error(fault)
	}
	b.step("an error in the browser is noticed", func() {
		b.value("fetch('https://outside.example/').catch(() => {})")
		until(b, "the error that the policy causes", func() bool { return len(b.taken()) > 0 })
	})
}

// press presses a key as a keyboard does. Unlike press, chromedp's own key events insert
// the character, or submit the form, even if the page has already handled the key.
func (b *browser) press(key, text string) {
	b.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: key, Text: text})
	}
}

func searchByKeys(b *browser) {
	b.arrived("/guide/linux.html")
	b.press("/", "/")
	b.until("document.activeElement.name", "q")
	b.do(chromedp.KeyEvent("type"))
	b.until("document.querySelectorAll('.mdv-results a').length", "2")
	b.shot("search")
	b.do(chromedp.KeyEvent(" zeb"))
	b.until("Array.from(document.querySelectorAll('.mdv-results mark')).pop().textContent", "zeb")
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.until("document.activeElement.getAttribute('aria-activedescendant')", "mdv:result0")
	b.press("Enter", "\r")
	b.arrived("/guide/install.html#from-source")
	b.press("/", "/")
	b.do(chromedp.KeyEvent("apt"))
	b.until("document.querySelector('.mdv-results').hidden", "false")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until("document.querySelector('.mdv-results').hidden", "true")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until("document.activeElement === document.body", "true")
}

func chooseTheme(b *browser) {
	const background = "getComputedStyle(document.body).backgroundColor"
	light := b.value(background)
	b.do(chromedp.Click(chromedp.CSS(".mdv-theme")))
	b.until("document.documentElement.dataset.theme", "dark")
	if dark := b.value(background); dark == light {
		b.Errorf("both themes have the background %s", dark)
	}
	b.do(chromedp.Navigate(b.url + "/"))
	b.arrived("/")
	b.until("document.documentElement.dataset.theme", "dark")
	b.shot("dark")
	b.do(chromedp.Click(chromedp.CSS(".mdv-theme")))
	b.until("document.documentElement.dataset.theme", "undefined")
	b.until(background, light)
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	until(b, "the system's dark theme", func() bool { return b.value(background) != light })
}

func narrow(b *browser) {
	b.do(chromedp.EmulateViewport(360, 740))
	for _, path := range []string{"/", "/guide/install.html", "/search?q=type", "/nothing"} {
		b.do(chromedp.Navigate(b.url + path))
		if width := b.value("document.documentElement.scrollWidth"); width != "360" {
			b.Errorf("%s is %s pixels wide", path, width)
		}
	}
	b.do(chromedp.Navigate(b.url + "/"))
	b.arrived("/")
	b.shot("narrow")
	b.do(chromedp.Click(chromedp.CSS(".mdv-menu")))
	b.until("document.querySelector('.mdv-menu').getAttribute('aria-expanded')", "true")
	b.until("getComputedStyle(document.querySelector('.mdv-nav')).visibility", "visible")
	b.shot("menu")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until("getComputedStyle(document.querySelector('.mdv-nav')).visibility", "hidden")
}

func TestTheSiteWorksWithoutJavaScript(t *testing.T) {
	r := start(t, viewer.Options{Content: content(t, tour)})
	ready(t, r)
	b := open(t, r.url)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.do(chromedp.Navigate(r.url+"/"),
		chromedp.SendKeys(chromedp.CSS(".mdv-search input"), "zebra"+kb.Enter))
	until(t, "the results of the server", func() bool {
		u, err := url.Parse(b.location())
		return err == nil && u.Path == "/search" && u.Query().Get("q") == "zebra"
	})
	b.do(chromedp.Click(chromedp.CSS(".mdv-found a")))
	until(t, "the section", func() bool { return b.location() == r.url+"/guide/install.html#from-source" })
}
