package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// grouped returns a report with two groups of several findings, and two groups of one.
func grouped() *Report {
	at := func(v judge.Verdict, object, path string) judge.Finding {
		return judge.Finding{Verdict: v, Sentence: "it differs", Reproduced: 3, Attempts: 3,
			Differences: []state.Difference{{Object: object, Path: path, Want: "1", Got: "2"}}}
	}
	r := &Report{Runs: 9, References: 3, Findings: []judge.Finding{
		at(judge.HotLoop, "Pod default/a", "spec.x"), at(judge.Diverged, "Pod default/a", "spec.x"), at(judge.Diverged, "Pod default/b", "spec.x"),
		{Verdict: judge.Leak, Sentence: "outside the cluster there is a bucket"}, at(judge.Leak, "Pod default/a", "spec.x"),
		{Verdict: judge.Leak, Sentence: "outside the cluster there is a disk"},
		at(judge.PathDependent, "Pod default/b", "spec.x"),
	}}
	r.Sort()
	return r
}

func TestFindingsAreGroupedByPlaceAndTheMostSeriousGroupIsFirst(t *testing.T) {
	var got []string
	for _, g := range grouped().groups() {
		text := g.place + ":"
		for _, f := range g.findings {
			text += fmt.Sprintf(" %d %s", f.number, f.Verdict)
		}
		got = append(got, text)
	}
	want := []string{
		"spec.x of Pod default/a: 1 DIVERGED 2 LEAK 3 HOT LOOP",
		"spec.x of Pod default/b: 4 DIVERGED 5 PATH DEPENDENT",
		": 6 LEAK",
		": 7 LEAK",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the groups are\n%s", strings.Join(got, "\n"))
	}
}

func TestOnlyAGroupOfSeveralFindingsHasAHeading(t *testing.T) {
	text := string(written(t, func(b *bytes.Buffer) error { return grouped().WriteText(b, TextOptions{}) }))
	page := htmlOf(t, grouped(), nil)
	for _, out := range []string{text, page} {
		if strings.Count(out, "concern ") != 2 || !strings.Contains(out, "Findings 1 to 3 concern spec.x of Pod default/a") ||
			!strings.Contains(out, "Findings 4 and 5 concern spec.x of Pod default/b") {
			t.Errorf("the headings are wrong:\n%s", out)
		}
	}
	if strings.Count(page, `<section class="group">`) != 2 || strings.Count(page, "<section") != strings.Count(page, "</section>") {
		t.Error("the groups are not sections, or a section is not closed")
	}
}

func TestAPartOfAFindingAfterTheSameFaultIsCountedThere(t *testing.T) {
	at := func(scenario, step, path string) judge.Finding {
		return judge.Finding{ID: scenario + step, Verdict: judge.Diverged, Scenario: scenario, Step: step,
			Fault:       &fault.Fault{Kind: fault.Error500, Point: fault.Point{Step: step, Verb: "update", Resource: "pods"}},
			Differences: []state.Difference{{Object: "Pod default/a", Path: path}}}
	}
	whole, part := at("life", "create", "status"), at("scale", "change", "status.conditions[Ready].message")
	part.AlsoBy = 2
	for name, order := range map[string][]judge.Finding{"the whole first": {whole, part}, "the part first": {part, whole}} {
		r := &Report{}
		r.Add(at("life", "create", "spec"))
		r.Add(order...)
		if len(r.Findings) != 2 || r.Findings[1].ID != whole.ID || r.Findings[1].AlsoBy != 3 || strings.Join(r.Findings[1].AlsoIn, " ") != "scale" {
			t.Errorf("%s: %+v", name, r.Findings)
		}
	}
	alone := part
	alone.Fault = nil
	both := whole
	both.Fault = nil
	r := &Report{}
	if r.Add(both, alone); len(r.Findings) != 2 {
		t.Error("findings without a fault are joined, so a later check would report one of them as fixed")
	}
}
