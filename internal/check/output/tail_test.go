package output

import (
	"strings"
	"testing"
)

func TestEndIsKeptAndBeginsWithAWholeLine(t *testing.T) {
	out := NewTail(1000)
	for range 10_000 {
		if n, err := out.Write([]byte("a line that says little\n")); n != 24 || err != nil {
			t.Fatal(n, err)
		}
		if len(out.data) > 2000 {
			t.Fatalf("%d bytes are held", len(out.data))
		}
	}
	_, _ = out.Write([]byte("panic: of all\n"))
	text := out.String()
	if len(text) > 1000 || len(text) < 900 || !strings.HasPrefix(text, "a line") || !strings.HasSuffix(text, "panic: of all\n") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

func TestWhatIsShortIsKeptWhole(t *testing.T) {
	out := NewTail(10)
	_, _ = out.Write([]byte("one\ntwo\n"))
	if got := out.String(); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
	if got := (*Tail)(nil).String(); got != "" {
		t.Errorf("a nil Tail returns %q", got)
	}
}

func TestOneLongLineIsKeptFromItsEnd(t *testing.T) {
	out := NewTail(4)
	_, _ = out.Write([]byte("0123456789é"))
	if got := out.String(); got != "89é" {
		t.Errorf("%q", got)
	}
}

func TestWhatWasWrittenSinceIsKeptAsFarAsThereIsRoom(t *testing.T) {
	out := NewTail(4)
	_, _ = out.Write([]byte("before\n"))
	written := out.Written()
	if got := out.Since(written); got != "" {
		t.Errorf("%q before the first write", got)
	}
	_, _ = out.Write([]byte("ab"))
	if got := out.Since(written); got != "ab" {
		t.Errorf("%q", got)
	}
	_, _ = out.Write([]byte(strings.Repeat("x", 100)))
	if got := out.Since(written); got != "xxxx" {
		t.Errorf("%q after more than there is room for", got)
	}
}

func TestLastLineIsTheLastOneThatIsNotBlank(t *testing.T) {
	for text, want := range map[string]string{"": "", "\n\n": "", "one": "one", "one\ntwo\n\n": "two", "one\r\n  two\r\n": "two"} {
		if got := LastLine(text); got != want {
			t.Errorf("the last line of %q: %q", text, got)
		}
	}
}

func TestLastLinesAreAtMostThatMany(t *testing.T) {
	for _, test := range []struct {
		text string
		n    int
		want string
	}{
		{"", 3, ""},
		{"\none\ntwo\n\n", 3, "one\ntwo"},
		{"one\ntwo\nthree\nfour\n", 2, "three\nfour"},
	} {
		if got := LastLines(test.text, test.n); got != test.want {
			t.Errorf("the last %d lines of %q: %q, want %q", test.n, test.text, got, test.want)
		}
	}
}
