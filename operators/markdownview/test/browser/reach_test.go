package browser

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

const narrow = 360

func TestNoPageScrollsSidewaysOnANarrowScreen(t *testing.T) {
	for name, site := range map[string]string{"book": book, "guide": guide} {
		t.Run(name, func(t *testing.T) {
			tab, err := browser.Open(narrow, 740)
			ok(t, err)
			t.Cleanup(tab.Close)
			walk(t, tab, site, func(address string) {
				const widest = `(() => {
					scrollTo(1000, 0);
					const wide = scrollX > 0 || document.documentElement.scrollWidth > innerWidth;
					if (!wide) return '';
					const clipped = (e) => e && e !== document.body && (getComputedStyle(e).overflowX !== 'visible' || clipped(e.parentElement));
					const guilty = [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right + scrollX > innerWidth + 1 && !clipped(e.parentElement));
					return document.documentElement.scrollWidth + ' px: ' + guilty.map((e) => e.outerHTML.slice(0, 80)).slice(0, 3).join(' ');
				})()`
				if got := value[string](t, tab, widest); got != "" {
					t.Errorf("%s is wider than the screen: %s", address, got)
				}
			})
		})
	}
}

func TestNavigationOpensAndClosesOnANarrowScreen(t *testing.T) {
	tab, err := browser.Open(narrow, 740)
	ok(t, err)
	t.Cleanup(tab.Close)
	ok(t, tab.Visit(book))
	const inView = `(() => { const r = document.querySelector('.mdv-nav').getBoundingClientRect(); return r.width > 0 && r.right > 0 && r.left < innerWidth && document.querySelector('.mdv-nav').checkVisibility({visibilityProperty: true}); })()`
	if value[bool](t, tab, inView) {
		t.Fatal("the navigation covers the page")
	}
	ok(t, tab.Click(`.mdv-menu`))
	ok(t, tab.Await(inView))
	ok(t, tab.Press(kb.Escape))
	ok(t, tab.Await(`!`+inView))
	ok(t, tab.Click(`.mdv-menu`))
	ok(t, tab.Await(inView))
	ok(t, tab.Click(`.mdv-nav a[href$="words.html"]`))
	ok(t, tab.Await(`location.pathname.endsWith('words.html')`))
	expectQuiet(t, tab, book)
}

func TestKeyboardAloneReachesEverythingAndShowsWhere(t *testing.T) {
	tab := open(t, book)
	ok(t, tab.Press(kb.Tab))
	const skip = `document.activeElement.classList.contains('mdv-skip')`
	if !value[bool](t, tab, skip+` && document.activeElement.getBoundingClientRect().top >= 0`) {
		t.Errorf("the first element that gets the focus is not a visible link that skips to the text")
	}
	ok(t, tab.Press(kb.Enter))
	ok(t, tab.Await(`document.activeElement.closest('main') || location.hash.endsWith('main')`))
	ok(t, tab.Press(kb.Tab))
	ok(t, tab.Await(`document.activeElement.closest('main')`))

	ok(t, tab.Visit(book))
	stops := map[string]bool{}
	for range 60 {
		ok(t, tab.Press(kb.Tab))
		// An element with the focus must have an outline, unless it is the page itself.
		const stop = `(() => {
			const e = document.activeElement;
			if (!e || e === document.body) return '';
			const s = getComputedStyle(e);
			const r = e.getBoundingClientRect();
			const seen = s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2;
			const inside = r.width > 0 && r.bottom > 0 && r.top < innerHeight && s.opacity > 0;
			return (seen && inside ? 'ok ' : 'unseen ') + e.tagName + ' ' + (e.className || e.getAttribute('href') || e.textContent.trim()).slice(0, 60);
		})()`
		at := value[string](t, tab, stop)
		if at == "" {
			break
		}
		if strings.HasPrefix(at, "unseen") {
			t.Errorf("the focus cannot be seen at %s", at)
		}
		stops[strings.TrimPrefix(at, "ok ")] = true
	}
	all := strings.Join(slices.Sorted(maps.Keys(stops)), "\n")
	for _, want := range []string{"INPUT", "mdv-theme", "words.html", "code.html", "mdv-next"} {
		if !strings.Contains(all, want) {
			t.Errorf("the keyboard does not reach %s, but only\n%s", want, all)
		}
	}
	expectQuiet(t, tab, book)
}

//go:embed testdata/accessible.js
var accessible string

func TestPagesAreAccessibleInBothThemes(t *testing.T) {
	for name, site := range map[string]string{"book": book, "guide": guide} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%s, %s", name, scheme), func(t *testing.T) {
				tab := open(t, site)
				ok(t, tab.Prefer(scheme))
				walk(t, tab, site, func(address string) {
					for _, fault := range value[[]string](t, tab, accessible) {
						t.Errorf("%s: %s", address, fault)
					}
				})
			})
		}
	}
}

func TestResultsOfASearchAreAccessibleInBothThemes(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			tab := open(t, book)
			ok(t, tab.Prefer(scheme))
			ok(t, tab.Press("/"))
			ok(t, tab.Press("the"))
			ok(t, tab.Await(`document.querySelectorAll('.mdv-results [role=option]').length > 0`))
			ok(t, tab.Press(kb.ArrowDown))
			for _, fault := range value[[]string](t, tab, accessible) {
				t.Error(fault)
			}
			ok(t, tab.Visit(book+"/search?q=the"))
			for _, fault := range value[[]string](t, tab, accessible) {
				t.Error(fault)
			}
		})
	}
}

func TestWhatIsNotAccessibleIsFound(t *testing.T) {
	for want, change := range map[string]string{
		"contrast of 2":  `document.querySelector('article p').style.color = '#aaa'`,
		"no alt":         `document.querySelector('article img').removeAttribute('alt')`,
		"for main":       `document.querySelector('main').replaceWith(...document.querySelector('main').childNodes)`,
		"exactly one h1": `document.querySelector('article').append(document.createElement('h1'))`,
		"level 5":        `document.querySelector('article').append(document.createElement('h5'))`,
		"no name":        `document.querySelector('.mdv-theme').removeAttribute('aria-label')`,
		"no label":       `document.querySelector('.mdv-search input').removeAttribute('aria-label')`,
	} {
		tab := open(t, book)
		ok(t, tab.Prefer("light"))
		value[any](t, tab, "void ("+change+")")
		if faults := strings.Join(value[[]string](t, tab, accessible), "\n"); !strings.Contains(faults, want) {
			t.Errorf("after %s: %q is not among\n%s", change, want, faults)
		}
	}
}
