package judge

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestABurstOfErrorsNamesOnlyTheRequestsThatFailed(t *testing.T) {
	f := fault.Fault{Kind: fault.ErrorBurst, Point: fault.Point{Step: "create", Verb: "create", Resource: "configmaps", Object: "default/child", Occurrence: 1}}
	for n, want := range map[int]string{
		1: "500 on POST configmaps default/child: ",
		2: "500 on POST configmaps default/child, 2 times in a row: ",
		3: "500 on POST configmaps default/child, three times in a row: ",
	} {
		s := tell(t).step("create").puts(driver, widget)
		for range n {
			s.call(one, "create", cm("child"), 500, 0).Injected = true
		}
		s.puts(one, generated("run-bbbbb")).healed(evidence.Never)
		found := Judge(reference(t, scene(), plain), s.after(f), nil)
		if len(found) != 1 || !strings.HasPrefix(found[0].Sentence, want) || found[0].Failed != n%3 {
			t.Errorf("after %d failed requests: %+v", n, found)
		}
	}
}

func TestALongSentenceLosesTheMiddleOfItsNamesButNotItsEnd(t *testing.T) {
	name := "default/the-" + strings.Repeat("very-", 40) + "long-name-of-replica-7"
	f := fault.Fault{Kind: fault.KillAfter, Point: fault.Point{Verb: "create", Resource: "secrets", Object: name}}
	got := sentence(&f, 0, "Secret "+name+" has no data.password, even after a restart")
	if utf8.RuneCountInString(got) > longestSentence {
		t.Errorf("%d characters: %s", utf8.RuneCountInString(got), got)
	}
	for _, want := range []string{"killed after POST secrets default/the-", "replica-7: Secret default/the-", "replica-7 has no data.password, even after a restart"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	many := sentence(nil, 0, strings.Repeat("word ", 100))
	if utf8.RuneCountInString(many) > longestSentence || !strings.HasSuffix(many, "word …") {
		t.Errorf("a sentence of short words is cut inside a word, or too long: %q", many)
	}
}

func TestAFindingIncludesOneInAPartOfItsPlaceAfterTheSameFault(t *testing.T) {
	fails := func(step string) *fault.Fault {
		return &fault.Fault{Kind: fault.Error500, Point: fault.Point{Step: step, Verb: "update", Resource: "widgets.x/status", Object: "default/w", Occurrence: 1}}
	}
	at := func(f *fault.Fault, path string) Finding {
		return Finding{Verdict: Diverged, Fault: f, Differences: []state.Difference{{Object: "Widget.x default/w", Path: path}}}
	}
	whole := at(fails("create"), "status")
	other := at(fails("change"), "status.conditions[Ready].message")
	other.Verdict = DivergedUntilRestart
	kill := at(&fault.Fault{Kind: fault.KillAfter, Point: fails("create").Point}, "status.phase")
	tests := map[string]struct {
		whole, part Finding
		want        bool
	}{
		"a part, in another step": {whole, at(fails("change"), "status.conditions[Ready].message"), true},
		"the same place":          {whole, at(fails("create"), "status"), true},
		"the whole in a part":     {at(fails("create"), "status.phase"), whole, false},
		"only a common beginning": {whole, at(fails("create"), "statusText"), false},
		"another verdict":         {whole, other, false},
		"another fault":           {whole, kill, false},
		"no fault":                {whole, at(nil, "status.phase"), false},
		"both without a fault":    {at(nil, "status"), at(nil, "status.phase"), true},
		"no place":                {whole, Finding{Verdict: Diverged, Fault: fails("create")}, false},
		"a missing object":        {at(fails("create"), ""), whole, false},
	}
	for name, test := range tests {
		if got := test.whole.Includes(test.part); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
