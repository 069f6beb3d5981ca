package state

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/scrub"
)

func TestLongValuesAreShownWhereTheyDiffer(t *testing.T) {
	same := strings.Repeat("lantern ", 40)
	want, got := excerpts(same+"is red", same+"is blue")
	if !strings.Contains(want, "is red") || !strings.Contains(got, "is blue") {
		t.Errorf("the difference is not in %s and %s", want, got)
	}
	for _, text := range []string{want, got} {
		if len([]rune(text)) > longest || !strings.HasPrefix(text, "…") {
			t.Errorf("%s is not a short excerpt from the middle", text)
		}
	}
}

func TestValuesThatDifferAtTheirBeginningAreShownFromThere(t *testing.T) {
	want, got := excerpts("red "+strings.Repeat("x", 100), "blue")
	if !strings.HasPrefix(want, `"red x`) || got != `"blue"` {
		t.Errorf("got %s and %s", want, got)
	}
	if want, got := excerpts(nil, "red"); want != "" || got != `"red"` {
		t.Errorf("a missing value and red are shown as %q and %q", want, got)
	}
}

func TestAnExcerptContainsNoPartOfASecretValue(t *testing.T) {
	secret := strings.Repeat("Xk9-", 30)
	scrub.Known.Add(secret)
	want, got := excerpts("token="+secret+"1", "token="+secret+"2")
	for _, text := range []string{want, got, short("token=" + secret)} {
		if strings.Contains(text, "Xk9") {
			t.Errorf("%s contains a part of the secret value", text)
		}
	}
}
