package state

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestADifferenceAsALineOfTheIgnoreListHidesThatDifferenceOnly(t *testing.T) {
	content := func(v string) string {
		return `,"annotations":{"example.com/a.b":"` + v + `","plain":"` + v + `"}},
"data":{"tls.crt":"` + v + `","a b":"` + v + `","x":"` + v + `"},
"spec":{"containers":[{"name":"app","image":"` + v + `"},{"name":"side.car/x","image":"` + v + `"}],
"list":[{"x":"` + v + `"},{"x":"` + v + `"}],"nodes":{"a.b":{"ready":"` + v + `","c.d":"` + v + `"}}},
"status":{"conditions":[{"type":"Ready","message":"` + v + `"},{"type":"example.com/Up","message":"` + v + `"}]}}`
	}
	want := parse(t, configMap("a", content("1")), configMap("b", content("1")), configMap("gone", `}}`))
	got := parse(t, configMap("a", content("2")), configMap("b", content("2")), configMap("extra", `}}`))
	var none *Mask
	all := none.Canonical(want).Diff(none.Canonical(got))
	if len(all) < 25 {
		t.Fatalf("only %d differences: %+v", len(all), all)
	}
	for _, hidden := range all {
		text := hidden.Object + " " + hidden.Path
		if hidden.Path == "" {
			text = hidden.Object + " *"
		}
		m := &Mask{Configured: []string{text}}
		rest := slices.DeleteFunc(slices.Clone(all), func(d Difference) bool {
			return d.Object == hidden.Object && d.Path == hidden.Path
		})
		if diff := cmp.Diff(rest, m.Canonical(want).Diff(m.Canonical(got))); diff != "" {
			t.Errorf("with %q, the differences should be (-) but are (+):\n%s", text, diff)
		}
		if !slices.Equal(m.Matched(), []string{text}) {
			t.Errorf("%q matched %q", text, m.Matched())
		}
	}
}

func TestAnIgnoreListNamesKeysElementsAndObjects(t *testing.T) {
	for _, tt := range []struct {
		line, object, shown string
		want                bool
	}{
		{"ConfigMap data.*", "ConfigMap default/a", "data[tls.crt]", true},
		{"ConfigMap metadata.annotations.*", "ConfigMap default/a", "metadata.annotations[example.com/a]", true},
		{"ConfigMap metadata.annotations[example.com/*]", "ConfigMap default/a", "metadata.annotations[example.com/a]", true},
		{"ConfigMap metadata.annotations[other.com/*]", "ConfigMap default/a", "metadata.annotations[example.com/a]", false},
		{"ConfigMap metadata.*", "ConfigMap default/a", "metadata.annotations[example.com/a]", true}, // by its parent
		{"ConfigMap default/a data.*", "ConfigMap default/a", "data[tls.crt]", true},
		{"ConfigMap default/* data.*", "ConfigMap default/a", "data[tls.crt]", true},
		{"ConfigMap other/* data.*", "ConfigMap default/a", "data[tls.crt]", false},
		{"ConfigMap default/b data.*", "ConfigMap default/a", "data[tls.crt]", false},
		{"* default/a data.*", "ConfigMap default/a", "data[tls.crt]", true},
	} {
		with := func(v string) Snapshot {
			return parse(t, configMap("a", `,"annotations":{"example.com/a":"`+v+`"}},"data":{"tls.crt":"`+v+`"}}`))
		}
		m := &Mask{Configured: []string{tt.line}}
		hidden := !slices.ContainsFunc(m.Canonical(with("1")).Diff(m.Canonical(with("2"))), func(d Difference) bool {
			return d.Object == tt.object && d.Path == tt.shown
		})
		if hidden != tt.want || (len(m.Matched()) > 0) != tt.want {
			t.Errorf("%q hides %s of %s: %v, want %v; matched %q", tt.line, tt.shown, tt.object, hidden, tt.want, m.Matched())
		}
	}
}

func TestALineOfTheIgnoreListIsSplitOutsideOfBrackets(t *testing.T) {
	for text, want := range map[string][]string{
		"Widget.example.com status.seen":      {"Widget.example.com", "", "status.seen"},
		" ConfigMap  default/a\tdata[a b].x ": {"ConfigMap", "default/a", "data[a b].x"},
		"ConfigMap data[a b]":                 {"ConfigMap", "", "data[a b]"},
		"Deployment.apps default/a-* *":       {"Deployment.apps", "default/a-*", "*"},
		"Widget":                              nil,
		"":                                    nil,
		"Widget default/a status.seen status.last": nil,
	} {
		kind, object, path, ok := SplitIgnore(text)
		got := []string{kind, object, path}
		if !ok {
			got = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzAnIgnoreLineNeverPanics(f *testing.F) {
	for _, text := range []string{"", "a", "a b", "a b c", "a [", "a ]", "a b[", "[ [ [", "a b[]..c", "a [b c] d", "\x00 \x00", "a \xc4"} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		l := newLine(text)
		_ = l.matchesObject("ConfigMap", "default/a")
		if l.parts != nil {
			_ = l.parts.MatchString("data" + partSeparator + "a")
		}
	})
}
