package site_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// onGround lists the text colors on each background.
var onGround = map[string][]string{
	"paper":  {"ink", "strong", "faint", "link", "code-ink", "note", "tip", "important", "warning", "caution"},
	"side":   {"ink", "strong", "faint"},
	"raised": {"ink", "strong", "faint", "link"},
	"code":   {"code-ink", "code-comment", "code-keyword", "code-type", "code-string", "code-number", "code-name", "code-builtin", "caution"},

	"accent-soft":    {"strong", "faint"},
	"found":          {"strong"},
	"note-soft":      {"ink", "link", "note", "faint"},
	"tip-soft":       {"ink", "link", "tip", "faint"},
	"important-soft": {"ink", "link", "important", "faint"},
	"warning-soft":   {"ink", "link", "warning", "faint"},
	"caution-soft":   {"ink", "link", "caution", "faint"},
}

func TestTextHasTheContrastOfWCAGAAInBothThemes(t *testing.T) {
	const least = 4.5 // WCAG 2.2, success criterion 1.4.3, text of any size
	css, err := os.ReadFile("theme/style.css")
	if err != nil {
		t.Fatal(err)
	}
	colours := map[string][2]string{}
	for _, m := range regexp.MustCompile(`--([a-z-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\)`).FindAllStringSubmatch(string(css), -1) {
		colours[m[1]] = [2]string{m[2], m[3]}
	}
	for ground, texts := range onGround {
		for _, text := range texts {
			for theme, name := range []string{"light", "dark"} {
				if got := contrast(t, colours[text][theme], colours[ground][theme]); got < least {
					t.Errorf("%s: --%s on --%s has a contrast of %.2f, want %.1f", name, text, ground, got, least)
				}
			}
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	la, lb := luminance(t, a), luminance(t, b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// luminance returns the relative luminance of a color, as WCAG 2.2 defines it.
func luminance(t *testing.T, hex string) float64 {
	if len(hex) != 6 {
		t.Fatalf("colour %q", hex)
	}
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
