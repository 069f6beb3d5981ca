package project

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestALibraryThatPanicsWithTheGoVersionIsNoted(t *testing.T) {
	for _, c := range []struct {
		goVersion, library string
		broken             bool
	}{
		{"go1.26.1", "v1.0.1", true},
		{"go1.26.1", "v0.0.0-20180701023420-4b7aa43c6742", true},
		{"go1.26.1", "v1.0.2", false},
		{"go1.18", "v1.0.1", true},
		{"go1.17.13", "v1.0.1", false},
	} {
		info := &debug.BuildInfo{GoVersion: c.goVersion, Deps: []*debug.Module{{Path: "k8s.io/api", Version: "v0.20.0"}, {Path: reflect2, Version: c.library}}}
		if got := brokenLibrary(info); (got != "") != c.broken || c.broken && !strings.Contains(got, "run go get "+reflect2+"@v1.0.2") {
			t.Errorf("%s and %s: %q", c.goVersion, c.library, got)
		}
	}
}
