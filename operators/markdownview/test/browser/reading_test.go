package browser

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/koboshi-dev/koboshi/operators/markdownview/test/chrome"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/rig"
)

func TestReaderWalksThroughTheSiteByClicking(t *testing.T) {
	tab := open(t, book)
	ok(t, tab.Click(`.mdv-nav a[href$="words.html"]`))
	ok(t, tab.Await(`document.querySelector('main h1')?.textContent.startsWith('Words')`))
	if got := value[string](t, tab, `document.querySelector('.mdv-nav [aria-current]').textContent`); !strings.Contains(got, "Words") {
		t.Errorf("the navigation marks %q as the current page", got)
	}
	if got := value[string](t, tab, `document.title`); !strings.Contains(got, "Words") || !strings.Contains(got, "The book of everything") {
		t.Errorf("the title is %q", got)
	}
	ok(t, tab.Click(`a[rel=next]:not(link)`))
	ok(t, tab.Await(`document.querySelector('main h1')?.textContent.startsWith('Deep down')`))
	// The picture is shown although this page is two folders down.
	ok(t, tab.Await(`document.querySelector('main img')?.naturalWidth > 0`))
	ok(t, tab.Click(`article a[href]:not(.anchor)`))
	ok(t, tab.Await(`document.querySelector('main h1')?.textContent.startsWith('Welcome')`))
	ok(t, tab.Click(`main a[href*="#a-table"]`))
	ok(t, tab.Await(`location.hash === '#a-table' && document.getElementById('a-table').getBoundingClientRect().top < innerHeight`))
	expectQuiet(t, tab, book)
}

func TestTypingFindsPagesAndTheKeyboardOpensThem(t *testing.T) {
	tab := open(t, book)
	ok(t, tab.Press("/"))
	ok(t, tab.Await(`document.activeElement === document.querySelector('.mdv-search input')`))
	ok(t, tab.Press("kumquat"))
	ok(t, tab.Await(`document.querySelectorAll('.mdv-results [role=option]').length > 0`))
	if got := value[string](t, tab, `document.querySelector('.mdv-results').textContent`); !strings.Contains(got, "Words") || !strings.Contains(got, "kumquat") {
		t.Errorf("the results are %q", got)
	}
	ok(t, tab.Press(kb.Escape))
	ok(t, tab.Await(`document.querySelector('.mdv-results').hidden`))
	ok(t, tab.Press(kb.ArrowDown))
	ok(t, tab.Await(`!document.querySelector('.mdv-results').hidden`))
	ok(t, tab.Press(kb.ArrowDown))
	ok(t, tab.Await(`document.querySelector('.mdv-results [aria-selected=true]')`))
	ok(t, tab.Press(kb.Enter))
	ok(t, tab.Await(`location.pathname.endsWith('words.html') && document.querySelector('main').textContent.includes('kumquat')`))
	expectQuiet(t, tab, book)
}

func TestTypingWhatIsNowhereSaysSo(t *testing.T) {
	tab := open(t, book)
	ok(t, tab.Press("/"))
	ok(t, tab.Press("zzzzzz"))
	ok(t, tab.Await(`document.querySelector('.mdv-results')?.textContent.includes('Nothing found')`))
	expectQuiet(t, tab, book)
}

// missingPicture is an image that a page refers to but the book does not contain.
const missingPicture = "images/missing.png"

// isDark is an expression that reports whether the page is dark.
const isDark = `(() => {
	const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g).map(Number);
	return r + g + b < 3 * 128;
})()`

func expectDark(t *testing.T, tab *chrome.Tab, want bool, when string) {
	t.Helper()
	if dark := value[bool](t, tab, isDark); dark != want {
		t.Errorf("%s the page is dark: %v, want %v", when, dark, want)
	}
}

func TestThemeFollowsTheSystemUntilItIsChosen(t *testing.T) {
	tab := open(t, book)
	for _, scheme := range []string{"light", "dark", "light"} {
		ok(t, tab.Prefer(scheme))
		expectDark(t, tab, scheme == "dark", "with a system that is "+scheme)
	}
	ok(t, tab.Click(`.mdv-theme`))
	expectDark(t, tab, true, "when dark is chosen")
	if got := value[string](t, tab, `document.querySelector('.mdv-theme').getAttribute('aria-pressed')`); got != "true" {
		t.Errorf("aria-pressed of the button is %s", got)
	}
	ok(t, tab.Visit(book+"/end.html"))
	expectDark(t, tab, true, "on another page")
	ok(t, tab.Visit(book))
	expectDark(t, tab, true, "back on the first")
	ok(t, tab.Click(`.mdv-theme`))
	expectDark(t, tab, false, "when light is chosen")
	ok(t, tab.Visit(book+"/end.html"))
	expectDark(t, tab, false, "on another page after light was chosen")
	expectQuiet(t, tab, book)
}

func TestNoPageHasAnErrorOrAsksAnybodyElse(t *testing.T) {
	for name, site := range map[string]string{"book": book, "guide": guide} {
		t.Run(name, func(t *testing.T) {
			tab := open(t, site)
			walk(t, tab, site, func(string) {})
			for _, problem := range tab.Problems() {
				if !strings.Contains(problem, missingPicture) {
					t.Error(problem)
				}
			}
			expectNoStrays(t, tab, site)
		})
	}
}

func TestWhatAnAuthorWritesNeverRuns(t *testing.T) {
	tab := open(t, book+"/hostile.html")
	ok(t, tab.Await(`document.readyState === 'complete'`))
	if shown := value[bool](t, tab, `document.querySelector('main').getBoundingClientRect().height > 0 && document.querySelector('main').textContent.includes('The last line of the page.')`); !shown {
		t.Error("the page is not shown to its end")
	}
	value[bool](t, tab, `(() => {
		for (const element of document.querySelectorAll('main a, main summary, main button, main details')) {
			if (!element.href || element.href.startsWith('javascript:') || element.href.startsWith('data:')) element.click();
		}
		for (const element of document.querySelectorAll('main *')) element.dispatchEvent(new Event('focus'));
		return true;
	})()`)
	// After two frames and a pause, all handlers have run.
	value[bool](t, tab, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(true), 200))))`)
	if by := value[string](t, tab, `document.documentElement.dataset.owned || ''`); by != "" {
		t.Errorf("the author's %s ran", by)
	}
	if at := value[string](t, tab, `location.href`); at != book+"/hostile.html" {
		t.Errorf("the page led to %s", at)
	}
	const suspects = `main :is(script, iframe, style, form, meta, base, link, object, embed, video), main [onload], main [onerror], main [ontoggle], main [onfocus], main [href^="javascript:" i], main [href^="data:" i]`
	if found := value[[]string](t, tab, "[...document.querySelectorAll(`"+suspects+"`)].map((e) => e.outerHTML)"); len(found) > 0 {
		t.Errorf("the page has %q", found)
	}
	for _, problem := range tab.Problems() {
		// The renderer removes everything that the content security policy would block, so
		// the only problem is the missing picture.
		if !strings.Contains(problem, missingPicture) {
			t.Error(problem)
		}
	}
	expectNoStrays(t, tab, book)
}

func TestSiteWorksWithoutJavaScript(t *testing.T) {
	tab, err := browser.Open(width, height)
	ok(t, err)
	t.Cleanup(tab.Close)
	ok(t, tab.WithoutScripts())
	ok(t, tab.Visit(book))
	if on := value[bool](t, tab, `document.documentElement.classList.contains('mdv-js')`); on {
		t.Fatal("scripts run")
	}
	if shown := value[bool](t, tab, `document.querySelector('.mdv-theme').checkVisibility()`); shown {
		t.Error("the button for the theme is shown, although it does nothing without scripts")
	}
	ok(t, tab.Click(`.mdv-nav a[href$="words.html"]`))
	ok(t, tab.Await(`document.querySelector('main h1')?.textContent.startsWith('Words')`))
	ok(t, tab.Click(`.mdv-search input`))
	ok(t, tab.Press("quince"))
	ok(t, tab.Press(kb.Enter))
	ok(t, tab.Await(`location.search.includes('quince') && document.querySelector('.mdv-found a')`))
	ok(t, tab.Click(`.mdv-found a`))
	ok(t, tab.Await(`location.pathname.endsWith('words.html')`))
	expectQuiet(t, tab, book)
}

func TestWhatGoesWrongInAPageIsFound(t *testing.T) {
	tab := open(t, book)
	value[any](t, tab, `void console.error('a complaint')`)
	value[any](t, tab, `fetch('https://elsewhere.invalid/').then(() => {}, () => {})`)
	value[any](t, tab, `void document.body.append(Object.assign(document.createElement('img'), {src: 'nowhere.png'}))`)
	value[any](t, tab, `void setTimeout(() => { throw new Error('a mistake') })`)
	for _, want := range []string{"a complaint", "Content Security Policy", "404", "an exception"} {
		err := rig.Await(t.Context(), patience, want, func(context.Context) error {
			if found := strings.Join(tab.Problems(), "\n"); !strings.Contains(found, want) {
				return errors.New(found)
			}
			return nil
		})
		ok(t, err)
	}
}
