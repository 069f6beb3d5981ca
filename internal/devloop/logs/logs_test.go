package logs

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/koboshi-dev/koboshi/internal/logline"
	"github.com/koboshi-dev/koboshi/internal/textwidth"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

func TestMain(m *testing.M) {
	time.Local = time.FixedZone("here", 2*60*60)
	os.Exit(m.Run())
}

// printer returns a printer to a buffer, at a fixed time. It holds lines for as long as a slow
// machine may need to write the next ones.
func printer(o Options) (*Printer, *bytes.Buffer) {
	var out bytes.Buffer
	p := New(&out, o)
	p.holdFor = time.Hour
	p.now = func() time.Time { return time.Date(2026, 11, 26, 3, 30, 36, 789e6, time.UTC) }
	return p, &out
}

// shown returns the output of a printer for a text.
func shown(o Options, text string) string {
	p, out := printer(o)
	_, _ = p.Write([]byte(text))
	_ = p.Close()
	return out.String()
}

func columns(n int) func() int { return func() int { return n } }

const unfold = "--log=full"

func TestALogIsShownAsExpected(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %q", err, files)
	}
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		input := string(archive.Files[0].Data)
		got := &txtar.Archive{Comment: archive.Comment, Files: []txtar.File{
			archive.Files[0],
			{Name: "short, 80 columns", Data: []byte(shown(Options{Width: columns(80), Unfold: unfold}, input))},
			{Name: "short, no terminal", Data: []byte(shown(Options{Unfold: unfold}, input))},
			{Name: "full", Data: []byte(shown(Options{Form: Full, Width: columns(80)}, input))},
		}}
		if *update {
			if err := os.WriteFile(name, txtar.Format(got), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(got))); diff != "" {
			t.Errorf("%s; rewrite it with -update (-want +got):\n%s", name, diff)
		}
	}
}

// inputs returns the inputs of all files in testdata.
func inputs(t testing.TB) string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %q", err, files)
	}
	var all strings.Builder
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(archive.Files[0].Data)
	}
	return all.String()
}

const (
	failed   = `{"level":"error","ts":"2026-11-26T03:30:36Z","msg":"Reconciler error","error":"no"}` + "\n"
	warned   = "W1126 05:30:36.460933    1934 main.go:47] careful\n"
	informed = "2026-11-26T03:30:36Z\tINFO\tsetup\tstarting\n"
)

func TestOutputThatIsNoLogStaysAsItIs(t *testing.T) {
	for _, text := range []string{
		"hello\n", "no end", "\n\n\n", "CRLF\r\n", "\x1b[2Jcolors\x1b[0m\n", "no UTF-8: \xff\xfe\n", "\x00\x01\r\r\n",
		"{\n  \"pretty\": true\n}\n", "\tindented\n > quoted\n", "function.Name\n", "function.Name\n\tfile.go:12\n",
		strings.Repeat("x", 3<<20) + "\n",
	} {
		for _, form := range []Form{Short, Full, Plain} {
			if got := shown(Options{Form: form, Color: true, Width: columns(80)}, text); got != text {
				t.Errorf("form %d: %.100q was shown as %.100q", form, text, got)
			}
		}
	}
}

func TestPlainOutputStaysAsItIsAndIsCounted(t *testing.T) {
	text := inputs(t) + "no end"
	plain, out := printer(Options{Form: Plain, Color: true, Width: columns(80)})
	short, _ := printer(Options{})
	for _, p := range []*Printer{plain, short} {
		_, _ = p.Write([]byte(text))
		_ = p.Close()
	}
	if diff := cmp.Diff(text, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(short.Total(), plain.Total()); diff != "" || plain.Total().Errors == 0 {
		t.Errorf("the counts differ, or are empty (-short +plain):\n%s", diff)
	}
}

func TestPlainOutputIsPassedOnBeforeALineIsComplete(t *testing.T) {
	p, out := printer(Options{Form: Plain})
	_, _ = p.Write([]byte("password: "))
	if out.String() != "password: " {
		t.Errorf("got %q", out)
	}
}

func TestALineThatIsNotCompleteIsShownAtTheEnd(t *testing.T) {
	for text, want := range map[string]string{
		"no end":                                  "no end",
		strings.TrimSuffix(informed, "\n"):        "05:30:36.789 I setup: starting\n",
		informed + "ship.Function":                "05:30:36.789 I setup: starting\nship.Function",
		`I1126 05:30:36.460933 1 a.go:1] "a" b=<`: `I1126 05:30:36.460933 1 a.go:1] "a" b=<`,
	} {
		p, out := printer(Options{})
		_, _ = p.Write([]byte(text))
		p.Flush()
		if out.String() == want {
			t.Errorf("%q was shown before it was complete", text)
		}
		_ = p.Close()
		if out.String() != want {
			t.Errorf("%q was shown as %q, want %q", text, out, want)
		}
	}
}

func TestHowALogIsWrittenDoesNotMatter(t *testing.T) {
	text := inputs(t)
	o := Options{Width: columns(80), Unfold: unfold}
	want := shown(o, text)
	for _, size := range []int{1, 7, 4096} {
		p, out := printer(o)
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			if written, err := p.Write(rest[:n]); written != n || err != nil {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		_ = p.Close()
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("in pieces of %d bytes (-want +got):\n%s", size, diff)
		}
	}
	if crlf := shown(o, strings.ReplaceAll(informed+failed, "\n", "\r\n")); crlf != shown(o, informed+failed) {
		t.Errorf("with CRLF: %q", crlf)
	}
}

func TestAStackIsShownSoonEvenIfNothingFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, out := printer(Options{Unfold: unfold})
		p.holdFor = holdFor
		printed := func() string {
			p.mu.Lock() // the timer writes in its own goroutine
			defer p.mu.Unlock()
			return out.String()
		}
		_, _ = p.Write([]byte(informed))
		before := printed()
		_, _ = p.Write([]byte("ship.Reconcile\n\tship.go:12\nruntime.main\n\truntime/proc.go:290\n"))
		if got := printed(); got != before {
			t.Errorf("shown before it is clear that the stack has ended: %q", got)
		}
		<-time.After(holdFor) // on the clock of synctest
		synctest.Wait()
		want := before + indent + "ship.Reconcile  ship.go:12\n" + indent + "1 frame of Go (--log=full shows them)\n"
		if got := printed(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		_ = p.Close()
		if got := printed(); got != want {
			t.Errorf("shown again: %q", got)
		}
	})
}

func TestColorsAreUsedOnlyIfWanted(t *testing.T) {
	text := informed + warned + failed
	plain := shown(Options{}, text)
	if strings.Contains(plain, "\x1b") {
		t.Errorf("without colors: %q", plain)
	}
	color := shown(Options{Color: true}, text)
	for _, want := range []string{"\x1b[32mI\x1b[0m", "\x1b[1;33mW\x1b[0m", "\x1b[1;31mE\x1b[0m", "\x1b[1mReconciler error\x1b[0m"} {
		if !strings.Contains(color, want) {
			t.Errorf("%q is missing in %q", want, color)
		}
	}
	if got := strip(color); got != plain {
		t.Errorf("without its colors, %q differs from %q", got, plain)
	}
}

// strip removes the colors that the printer uses.
func strip(text string) string {
	for _, s := range []style{bold, dim, red, yellow, green, cyan, "0"} {
		text = strings.ReplaceAll(text, "\x1b["+string(s)+"m", "")
	}
	return text
}

func TestTheTimeIsMorePreciseThanWholeSeconds(t *testing.T) {
	for stamp, want := range map[string]string{
		"2026-11-26T03:30:36Z":      "05:30:36.789", // the present
		"2026-11-26T03:30:35Z":      "05:30:36.789", // it was printed at the end of this second
		"2026-11-26T03:30:30Z":      "05:30:30    ",
		"2026-11-26T03:30:36.012Z":  "05:30:36.012",
		"2026-11-26T13:30:36+09:00": "06:30:36    ",
	} {
		if got := shown(Options{}, stamp+"\tINFO\tx\n"); !strings.HasPrefix(got, want+" I x") {
			t.Errorf("%s is shown as %q, want %s", stamp, got, want)
		}
	}
}

func TestErrorsAreCountedAndGrouped(t *testing.T) {
	p, _ := printer(Options{})
	_, _ = p.Write([]byte(informed + failed + warned + failed + `E1126 05:30:36.460933 1 a.go:1] "other" b="c"` + "\nERROR: not a line of a log\n"))
	_ = p.Close()
	want := Counts{Errors: 3, Warnings: 1, Messages: []Message{{"Reconciler error: no", 2}, {"other", 1}}}
	if diff := cmp.Diff(want, p.Recent()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Counts{}, p.Recent()); diff != "" {
		t.Errorf("counted again (-want +got):\n%s", diff)
	}
	_, _ = p.Write([]byte(failed))
	if got := p.Recent(); got.String() != "1 error" {
		t.Errorf("got %s", got)
	}
	if got := p.Total(); got.String() != "4 errors and 1 warning" || got.Messages[0].Count != 3 {
		t.Errorf("got %+v", got)
	}
	if got := (Counts{Warnings: 2}); got.String() != "2 warnings" || (Counts{}).String() != "" {
		t.Errorf("got %q", got)
	}
}

func TestManyDifferentErrorsAreAllCounted(t *testing.T) {
	p, _ := printer(Options{Form: Plain})
	const n = mostMessages + 10
	for i := range n {
		_, _ = fmt.Fprintf(p, "2026-11-26T03:30:36Z\tERROR\tattempt %d\n", i)
	}
	if got := p.Total(); got.Errors != n || len(got.Messages) != mostMessages {
		t.Errorf("%d errors, %d messages", got.Errors, len(got.Messages))
	}
}

func TestALineOfMegabytesIsShortOnATerminal(t *testing.T) {
	long := strings.Repeat("コボシ ", 1<<19)
	line := `{"level":"info","ts":"2026-11-26T03:30:36Z","msg":"m","a":"` + long + `","b":1}` + "\n"
	if got := shown(Options{Width: columns(80)}, line); len(got) > 200 || !strings.HasSuffix(got, "… b=1\n") {
		t.Errorf("%d bytes: %.300q", len(got), got)
	}
	if got := shown(Options{}, line); !strings.Contains(got, long) {
		t.Error("the value was cut although the output is no terminal")
	}
	if got := shown(Options{Form: Full, Width: columns(80)}, line); !strings.Contains(got, long) {
		t.Error("the value was cut although everything is to be shown")
	}
}

func TestALineThatIsTooLongToParseStaysAsItIs(t *testing.T) {
	p, out := printer(Options{})
	part := bytes.Repeat([]byte("x"), 1<<20)
	size := 0
	for size <= longestLine {
		_, _ = p.Write(part)
		size += len(part)
	}
	if out.Len() != size {
		t.Errorf("%d of %d bytes were shown", out.Len(), size)
	}
	_, _ = p.Write([]byte("end\n" + informed))
	if rest := out.String()[size:]; rest != "end\n05:30:36.789 I setup: starting\n" {
		t.Errorf("then %q", rest)
	}
}

func TestSeveralGoroutinesMayWrite(t *testing.T) {
	p, out := printer(Options{Width: columns(80), Unfold: unfold})
	const writers, lines = 8, 100
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range lines {
				_, _ = p.Write([]byte(failed))
				p.Flush()
				_, _ = p.Recent(), p.Total()
			}
		})
	}
	all.Wait()
	_ = p.Close()
	if got := p.Total(); got.Errors != writers*lines || strings.Count(out.String(), " E Reconciler error\n"+indent+"no\n") != writers*lines {
		t.Errorf("%s of %d", got, writers*lines)
	}
}

// seeds adds the inputs of testdata to a fuzzer.
func seeds(f *testing.F) {
	for line := range strings.Lines(inputs(f)) {
		f.Add(line)
	}
	f.Add(inputs(f))
	f.Add(`{"level":"info","msg":"a","b":"\u001b[2J","c":"` + strings.Repeat("long ", 30) + `"}`)
	f.Add("{\"msg\":\"\xff\",\"\u202e\u200b\u009b\":{\"x\":\"\u009b\"}}\r\n")
}

func FuzzNoValueControlsTheTerminal(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		line, _, _ := strings.Cut(text, "\n")
		if _, ok := logline.Parse(strings.TrimSuffix(line, "\r")); !ok || logline.Begins(line) {
			if got := shown(Options{Color: true}, line); got != line {
				t.Errorf("%q was shown as %q", line, got)
			}
			return
		}
		for _, form := range []Form{Short, Full} {
			got := shown(Options{Form: form, Color: true, Width: columns(80)}, line+"\n")
			if strings.ContainsFunc(strings.ReplaceAll(strip(got), "\n", ""), unicode.IsControl) {
				t.Errorf("form %d: %q was shown as %q", form, line, got)
			}
		}
	})
}

func FuzzShortLinesFit(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		line, _, _ := strings.Cut(text, "\n")
		l, ok := logline.Parse(line)
		if !ok {
			return
		}
		if len(fold(l).stack) > 0 {
			return // its lines are not cut
		}
		for _, width := range []int{40, 80, 120} {
			p, _ := printer(Options{Width: columns(width)})
			for line := range strings.SplitSeq(p.short(l), "\n") {
				if wide := textwidth.Width(line); wide > width {
					t.Errorf("%d columns instead of %d: %q", wide, width, line)
				}
			}
		}
	})
}

func FuzzPlainOutputStaysAsItIs(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		if got := shown(Options{Form: Plain}, text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	})
}

func FuzzFullOutputHasEveryField(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		line, _, _ := strings.Cut(text, "\n")
		l, ok := logline.Parse(line)
		if !ok {
			return
		}
		p, _ := printer(Options{Form: Full, Width: columns(80)})
		got := p.full(l)
		want := []string{visible(l.Stamp), visible(l.Severity), visible(l.Message), quoted(l.Logger), quoted(l.Caller)}
		for _, f := range l.Fields {
			if f.Key == "stacktrace" && !f.JSON {
				continue // its lines are separate
			}
			want = append(want, quoted(f.Key)+"="+unfolded(f))
		}
		for _, text := range want {
			if !strings.Contains(got, strings.TrimPrefix(text, `""`)) {
				t.Errorf("%q was shown as %q, without %q", line, got, text)
			}
		}
	})
}
