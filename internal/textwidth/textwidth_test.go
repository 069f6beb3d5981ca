package textwidth

import (
	"slices"
	"strings"
	"testing"
)

func TestWideCharactersTakeTwoColumnsAndCombiningOnesNone(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "コボシ": 6, "e\u0301": 1, "Ⓚ": 1} {
		if got := Width(text); got != want {
			t.Errorf("%q has %d columns, want %d", text, got, want)
		}
	}
}

func TestACutTextFitsAndEndsWithTheMark(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"reconcile", 9, "reconcile"},
		{"reconcile", 8, "reconci…"},
		{"コボシ", 5, "コボ…"},
		{"コボシ", 4, "コ…"},
		{"abc", 0, "a…"}, // at least one character
	} {
		if got := Short(c.text, c.most, "…"); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestAnElidedTextFitsAndKeepsBothEnds(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"reconcile", 9, "reconcile"},
		{"default/viewer-a-0", 9, "defa…-a-0"},
		{"default/viewer-a-0", 8, "defa…a-0"},
		{"コボシはダルマ", 9, "コボ…ルマ"},
		{"abcdef", 0, "a…f"}, // at least one character of each end
	} {
		if got := Elide(c.text, c.most, "…"); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestALineIsWrappedAtSpaces(t *testing.T) {
	for _, c := range []struct {
		line string
		most int
		want []string
	}{
		{"a  b", 10, []string{"a  b"}},
		{"the Deployment is ready", 10, []string{"the", "Deployment", "is ready"}},
		{"  indented words", 10, []string{"  indented", "  words"}},
		{"abcdefghijklm", 8, []string{"abcdefgh", "ijklm"}},
	} {
		if got := Wrap(c.line, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d columns: %q, want %q", c.line, c.most, got, c.want)
		}
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("  a word and コボシ", 9)
	f.Fuzz(func(t *testing.T, line string, most int) {
		pieces := Wrap(line, most%200)
		if len(pieces) > 1 && strings.Join(strings.Fields(strings.Join(pieces, "")), "") != strings.Join(strings.Fields(line), "") {
			t.Errorf("%q was wrapped to %q", line, pieces)
		}
		for _, piece := range pieces {
			if width := Width(piece); width > max(most%200, leastWrap) {
				t.Errorf("%q has %d columns", piece, width)
			}
		}
	})
}
