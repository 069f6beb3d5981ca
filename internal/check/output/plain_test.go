package output

import "testing"

func TestPlainTextHasNoControls(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\ttext": "plain\n\ttext",
		"sink.go:61: \b\b\b| \x1b[32;1mDELETE\x1b[0;22m | ok\r\n": "sink.go:61: | DELETE | ok\n",
		"\x1b[2K\x1b(Bdone": "done",
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
