package report

import (
	"bytes"
	"encoding/xml"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// element is any XML element. Tests use it instead of the types under test.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []element  `xml:",any"`
}

func (e element) attr(t *testing.T, name string) string {
	t.Helper()
	i := slices.IndexFunc(e.Attrs, func(a xml.Attr) bool { return a.Name.Local == name })
	if i < 0 {
		t.Fatalf("<%s> has no attribute %s", e.XMLName.Local, name)
	}
	return e.Attrs[i].Value
}

func (e element) all(name string) []element {
	return slices.DeleteFunc(slices.Clone(e.Children), func(c element) bool { return c.XMLName.Local != name })
}

func (e element) number(t *testing.T, name string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(e.attr(t, name), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func junitOf(t *testing.T, r *Report) element {
	t.Helper()
	var root element
	data := written(t, func(b *bytes.Buffer) error { return r.WriteJUnit(b) })
	if err := xml.Unmarshal(data, &root); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return root
}

func TestJUnitIsAsInTheGoldenFile(t *testing.T) {
	golden(t, "junit.xml", written(t, func(b *bytes.Buffer) error { return sample().WriteJUnit(b) }))
}

// TestJUnitKeepsTheRulesOfItsReaders checks the rules of Jenkins' junit-10.xsd, and the
// counts of elements.
func TestJUnitKeepsTheRulesOfItsReaders(t *testing.T) {
	damaged := sample()
	damaged.Findings[0].Sentence, damaged.Findings[0].Detail, damaged.Subject = hostile, hostile+"]]>\x00", hostile
	for name, r := range map[string]*Report{"sample": sample(), "hostile": damaged, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			root := junitOf(t, r)
			if root.XMLName.Local != "testsuites" {
				t.Fatalf("the root is %s", root.XMLName.Local)
			}
			var tests, failures, took float64
			for _, suite := range root.all("testsuite") {
				checkSuite(t, suite)
				tests += suite.number(t, "tests")
				failures += suite.number(t, "failures")
				took += suite.number(t, "time")
			}
			if root.number(t, "tests") != tests || root.number(t, "failures") != failures || root.number(t, "errors") != 0 {
				t.Errorf("the counts of <testsuites> are not the sums over its suites: %v", root.Attrs)
			}
			if d := root.number(t, "time") - took; d > 0.01 || d < -0.01 {
				t.Errorf("the time of <testsuites> is off by %v", d)
			}
		})
	}
}

var (
	timeOfCase = regexp.MustCompile(`^\d+\.\d{3}$`)
	timestamp  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$`)
)

func checkSuite(t *testing.T, suite element) {
	t.Helper()
	cases := suite.all("testcase")
	counts := map[string]int{}
	names := map[string]bool{}
	for _, c := range cases {
		name := c.attr(t, "classname") + " " + c.attr(t, "name")
		if names[name] {
			t.Errorf("two cases are named %s", name)
		}
		names[name] = true
		if !timeOfCase.MatchString(c.attr(t, "time")) {
			t.Errorf("the time of %s is %s", name, c.attr(t, "time"))
		}
		outcomes := 0
		for _, child := range c.Children {
			counts[child.XMLName.Local]++
			if child.XMLName.Local != "system-out" {
				outcomes++
			}
		}
		if outcomes > 1 {
			t.Errorf("%s has %d outcomes", name, outcomes)
		}
	}
	for attribute, want := range map[string]int{"tests": len(cases), "failures": counts["failure"], "skipped": counts["skipped"], "errors": 0} {
		if got := suite.number(t, attribute); int(got) != want {
			t.Errorf("suite %s declares %v %s, but has %d", suite.attr(t, "name"), got, attribute, want)
		}
	}
	for _, a := range suite.Attrs {
		if a.Name.Local == "timestamp" && !timestamp.MatchString(a.Value) {
			t.Errorf("the timestamp is %s", a.Value)
		}
	}
}

func TestEveryFindingThatCountsIsInAFailureOfJUnitWithItsWholeText(t *testing.T) {
	r := sample()
	// Add a finding of a kind that the report does not count, a finding without a
	// scenario, and a second finding of kind kill-after.
	r.Findings = append(r.Findings,
		judge.Finding{ID: "a", Verdict: judge.Leak, Scenario: "life", Sentence: "A bucket is left.", Fault: &fault.Fault{Kind: fault.LoseLease}},
		judge.Finding{ID: "b", Verdict: judge.RBACMissing, Sentence: "It may not list nodes."},
		judge.Finding{ID: "c", Verdict: judge.Crashed, Scenario: "life", Sentence: "It panicked.", Fault: &fault.Fault{Kind: fault.KillAfter}})
	var failures strings.Builder
	for _, suite := range junitOf(t, r).all("testsuite") {
		for _, c := range suite.all("testcase") {
			for _, f := range c.all("failure") {
				failures.WriteString(strings.Join(strings.Fields(f.Text), " ") + "\n")
			}
		}
	}
	for _, f := range r.Findings {
		sentence := strings.Join(strings.Fields(f.Sentence), " ")
		if got := strings.Count(failures.String(), sentence); got != 1 {
			t.Errorf("%s %q is %d times in the failures:\n%s", f.Verdict, sentence, got, failures.String())
		}
	}
	if !strings.Contains(failures.String(), r.Findings[0].Replay) || !strings.Contains(failures.String(), `want "Ready"`) {
		t.Errorf("the replay command or a difference is missing:\n%s", failures.String())
	}
}

func TestWhatCouldNotBeJudgedIsSkippedInJUnit(t *testing.T) {
	skipped := map[string]string{}
	for _, suite := range junitOf(t, sample()).all("testsuite") {
		for _, c := range suite.all("testcase") {
			for _, s := range c.all("skipped") {
				skipped[suite.attr(t, "name")+" "+c.attr(t, "name")] = s.attr(t, "message")
			}
		}
	}
	want := map[string]string{
		"scale stale-restart":           "not applied: 2 because the client lists pods without resourceVersion=0, so it requests the latest state",
		"life kill-after, inconclusive": "1 run without a result: 1 because diverged was found in 1 of 4 runs",
	}
	for name, message := range want {
		if skipped[name] != message {
			t.Errorf("%s is skipped because %q, want %q", name, skipped[name], message)
		}
	}
	if len(skipped) != len(want) {
		t.Errorf("skipped: %v", skipped)
	}
}
