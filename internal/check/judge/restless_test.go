package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
)

func TestSlowWritesOfAStepThatNeverRestsAreALoopIfTheyLeadNowhere(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for name, c := range map[string]struct {
		pause time.Duration
		data  func(i int) string
		loop  bool
	}{
		"the same value again and again":          {700 * time.Millisecond, func(i int) string { return "own" + strings.Repeat("\nkey", i) }, true},
		"two states in turn":                      {700 * time.Millisecond, func(i int) string { return fmt.Sprint(i % 2) }, true},
		"one value after the other":               {700 * time.Millisecond, func(i int) string { return letters[:i] }, false},
		"a count":                                 {700 * time.Millisecond, func(i int) string { return fmt.Sprint(1000 + i) }, false},
		"a count, too fast for progress":          {100 * time.Millisecond, func(i int) string { return fmt.Sprint(1000 + i) }, true},
		"the same value, less than once a second": {1100 * time.Millisecond, func(i int) string { return "own" + strings.Repeat("\nkey", i) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t).step("create")
			for i := range 40 {
				s.at += c.pause
				s.puts(one, fmt.Sprintf(`ConfigMap default/a {"data":{"keys":%q}}`, c.data(i)))
			}
			s.rest().Restless = true
			if got := verdicts(Faultless(nil, []*evidence.Run{s.end()}, nil)); (got == string(HotLoop)) != c.loop {
				t.Errorf("found %q", got)
			}
		})
	}
}

func TestInsertedIsTextThatOnlyOneInsertionExplains(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{`["a"]`, `["a","a"]`, `,"a"`},
		{`["a","a"]`, `["a","a","a"]`, `,"a"`},
		{`["a"]`, `["a"]`, ""},
		{`["a","b"]`, `["a"]`, ""},
		{`["a"]1`, `["a","a"]2`, ""},
		{"", "x", "x"},
	} {
		if got := inserted(c.before, c.after); got != c.want {
			t.Errorf("%s to %s: %q, want %q", c.before, c.after, got, c.want)
		}
	}
}
