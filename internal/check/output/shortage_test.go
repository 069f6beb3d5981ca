package output

import (
	"strings"
	"testing"
)

func TestOnlyTheEndOfTheOutputShowsAShortage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"level":"error","msg":"manager failed","error":"running the manager: too many open files"}`: "too many open files",
		"OSError: [Errno 28] no space left on device: 'x'\n":                                          "no space left on device",
		"fork/exec /bin/x: resource temporarily unavailable":                                          "resource temporarily unavailable",
		"too many open files\n" + strings.Repeat("going on\n", 10):                                    "",
		"panic: runtime error": "",
	} {
		if got := Shortage(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
