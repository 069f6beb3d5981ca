package kubeversion

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/util/compatibility"
)

func TestTheMinorsAreThoseThatUpstreamAccepts(t *testing.T) {
	t.Parallel()
	minors := Minors()
	got := compatibility.DefaultBuildEffectiveVersion().AllowedEmulationVersionRange()
	first, last := minors[0], minors[len(minors)-1]
	if want := first + ".." + last + "("; !strings.HasPrefix(got, want) {
		t.Errorf("upstream can emulate %s, and Minors returns %v", got, minors)
	}
	if !strings.HasPrefix(Version, last+".") {
		t.Errorf("the last of %v is not the minor version of %s", minors, Version)
	}
}

func TestOnlyMinorVersionsInTheRangeAreAccepted(t *testing.T) {
	t.Parallel()
	minors := Minors()
	for _, m := range minors {
		for _, written := range []string{m, "v" + m} {
			if got, err := ParseMinor(written); err != nil || got != m {
				t.Errorf("%s: %q (%v), want %s", written, got, err, m)
			}
		}
	}
	for version, want := range map[string]string{
		"1.2":               `version "1.2" cannot be emulated; choose one of: ` + strings.Join(minors, ", "),
		"":                  `choose one of: `,
		"2":                 `choose one of: `,
		minors[0] + ".2":    `only minor versions can be emulated; write ` + minors[0],
		minors[0] + "0":     `choose one of: `,
		"kube=" + minors[0]: `choose one of: `,
	} {
		if _, err := ParseMinor(version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", version, err, want)
		}
	}
}

func TestTheNoteIsOnlyForAnOlderVersion(t *testing.T) {
	t.Parallel()
	minors := Minors()
	if note := EmulationNote(minors[len(minors)-1]) + EmulationNote(""); note != "" {
		t.Errorf("a note without an emulation: %s", note)
	}
	if note := EmulationNote(minors[0]); !strings.Contains(note, "emulates "+minors[0]) {
		t.Errorf("the note: %s", note)
	}
	for line := range strings.Lines("koboshi: " + EmulationNote(minors[0])) {
		if len(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
}

func TestAComponentEmulatesTheVersionOfItsOwnFlagsFirst(t *testing.T) {
	t.Parallel()
	oldest := Minors()[0]
	flags := []string{"--v=2"}
	for _, test := range []struct {
		flags []string
		minor string
		want  []string
	}{
		{flags, "", flags},
		{flags, oldest, []string{"--v=2", "--emulated-version=kube=" + oldest}},
		{[]string{"--emulated-version=1.36"}, oldest, []string{"--emulated-version=1.36"}},
	} {
		if got, err := Emulating(test.flags, test.minor); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%q with %q: %q (%v), want %q", test.flags, test.minor, got, err, test.want)
		}
	}
	if _, err := Emulating(flags, "1.2"); err == nil {
		t.Error("version 1.2 was accepted")
	}
}

func FuzzParseMinor(f *testing.F) {
	for _, seed := range []string{"1.34", "v1.37", "1.37.0", "", "v", "1.", "1.99"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, version string) {
		got, err := ParseMinor(version)
		if err == nil && got != strings.TrimPrefix(version, "v") {
			t.Errorf("%q is read as %q", version, got)
		}
	})
}
