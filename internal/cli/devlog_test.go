package cli

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/devloop"
)

const loggedError = `{"level":"error","ts":"2026-11-26T03:30:36Z","msg":"Reconciler error","error":"no"}` + "\n"

func TestWithoutATerminalTheLogIsWhatTheManagerPrints(t *testing.T) {
	for form, want := range map[string]string{"": loggedError, "plain": loggedError, "full": "2026-11-26T03:30:36Z error Reconciler error error=no\n"} {
		var out bytes.Buffer
		if _, err := managerLog(&out, form).Write([]byte(loggedError)); err != nil || out.String() != want {
			t.Errorf("--log=%s: %v, %q, want %q", form, err, &out, want)
		}
	}
}

func TestTheLineOfARoundReportsTheErrorsSinceTheRoundBefore(t *testing.T) {
	var out, notes bytes.Buffer
	v := &devView{err: &notes, log: managerLog(&out, "")}
	log := func(text string) {
		t.Helper()
		if _, err := v.log.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	log(loggedError + loggedError)
	v.Round(devloop.Report{})
	log("W1126 05:30:36.460933    1934 main.go:47] careful\n")
	v.Round(devloop.Report{})
	log(loggedError)
	v.Round(devloop.Report{Err: errors.New("it failed")})
	want := "koboshi: start; 2 errors logged since the start\nkoboshi: start\nkoboshi: start and failed; 1 error logged since the previous round\n"
	if notes.String() != want {
		t.Errorf("got %q, want %q", &notes, want)
	}
}

func TestTheEndOfASessionListsTheMostFrequentErrors(t *testing.T) {
	var out, notes bytes.Buffer
	v := &devView{err: &notes, log: managerLog(&out, "")}
	v.summarize()
	if notes.Len() > 0 {
		t.Errorf("without an error: %q", &notes)
	}
	text := loggedError + loggedError
	for i := range mostMessages + 1 {
		text += "2026-11-26T03:30:36Z\tERROR\tother " + strconv.Itoa(i) + "\n"
	}
	if _, err := v.log.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	v.summarize()
	got := notes.String()
	if !strings.HasPrefix(got, "koboshi: the manager logged 8 errors in this session\n  2 × Reconciler error: no\n  1 × other 0\n") ||
		!strings.HasSuffix(got, "  1 × other 3\n  and 2 other messages\n") {
		t.Errorf("got %q", got)
	}
}
