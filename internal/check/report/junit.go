package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

// These types are the elements of a JUnit report, as defined by Jenkins' junit-10.xsd and
// read by GitLab.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string           `xml:"name,attr"`
		Tests      int              `xml:"tests,attr"`
		Failures   int              `xml:"failures,attr"`
		Errors     int              `xml:"errors,attr"`
		Skipped    int              `xml:"skipped,attr"`
		Time       string           `xml:"time,attr"`
		Timestamp  string           `xml:"timestamp,attr,omitempty"`
		Properties *junitProperties `xml:"properties,omitempty"`
		Cases      []junitCase      `xml:"testcase"`
	}
	junitProperties struct {
		Properties []junitProperty `xml:"property"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Classname string        `xml:"classname,attr"`
		Time      string        `xml:"time,attr"`
		Skipped   *junitSkipped `xml:"skipped,omitempty"`
		Failure   *junitFailure `xml:"failure,omitempty"`
		SystemOut *junitText    `xml:"system-out,omitempty"`

		seconds float64
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",cdata"` // the text is already escaped, and CDATA keeps its lines readable
	}
	junitText struct {
		Text string `xml:",cdata"`
	}
)

// withoutFault is the name of the JUnit case for findings without a fault.
const withoutFault = "without a fault"

// WriteJUnit writes the report in JUnit's format: a suite for each scenario, with a case
// for each kind of fault. A finding is reported as a failure with its complete text. If a
// kind has no result, its case is marked as skipped. If only some runs of a kind were
// inconclusive, these runs form a separate skipped case.
func (r *Report) WriteJUnit(w io.Writer) error {
	whole := junitSuites{Name: "koboshi check " + inline(r.Subject)}
	total := 0.0
	for _, name := range r.suites() {
		suite, took := r.suite(name)
		whole.Tests += suite.Tests
		whole.Failures += suite.Failures
		total += took
		whole.Suites = append(whole.Suites, suite)
	}
	whole.Time = junitTime(total)
	data, err := xml.MarshalIndent(whole, "", "  ")
	if err == nil {
		_, err = w.Write([]byte(xml.Header + string(data) + "\n"))
	}
	if err != nil {
		return fmt.Errorf("writing the report as JUnit: %w", err)
	}
	return nil
}

// suites returns the scenarios, followed by "" if anything belongs to no scenario.
func (r *Report) suites() []string {
	var names []string
	other := false
	add := func(name string) {
		if name == "" {
			other = true
		} else if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, s := range r.Scenarios {
		add(s.Name)
	}
	for _, s := range r.NotLearnt {
		add(s.Scenario)
	}
	for _, t := range r.Tried {
		add(t.Scenario)
	}
	other = other || r.Stopped != "" || r.Idle != ""
	for _, f := range slices.Concat(r.Findings, r.remarks()) {
		add(f.Scenario)
	}
	if other {
		names = append(names, "")
	}
	return names
}

func (r *Report) suite(scenario string) (suite junitSuite, took float64) {
	suite.Name = inline(scenario)
	if scenario == "" {
		suite.Name = "all scenarios"
	}
	if !r.Started.IsZero() {
		suite.Timestamp = r.Started.UTC().Format("2006-01-02T15:04:05")
	}
	suite.Properties = &junitProperties{[]junitProperty{{"seed", fmt.Sprint(r.Seed)}, {"command", inline(r.Command)}}}
	if r.Shard != "" {
		suite.Properties.Properties = append(suite.Properties.Properties, junitProperty{"shard", inline(r.Shard)})
	}
	suite.Cases = r.cases(scenario)
	for i := range suite.Cases {
		c := &suite.Cases[i]
		c.Classname = strings.ReplaceAll(inline(r.Subject), ".", "_") + "." + suite.Name
		c.Time = junitTime(c.seconds)
		took += c.seconds
		suite.Tests++
		if c.Failure != nil {
			suite.Failures++
		}
		if c.Skipped != nil {
			suite.Skipped++
		}
	}
	suite.Time = junitTime(took)
	return suite, took
}

func junitTime(s float64) string { return fmt.Sprintf("%.3f", s) }

// cases returns the cases of a scenario: first the case without a fault, then one case for
// each kind.
func (r *Report) cases(scenario string) []junitCase {
	var cases []junitCase
	counted := map[fault.Kind]bool{}
	reference := junitCase{Name: withoutFault}
	for _, s := range r.Scenarios {
		if s.Name == scenario {
			reference.seconds = s.Seconds
		}
	}
	reference.fail(r.findings(scenario, ""))
	reference.SystemOut = remarkText(r.remarks(), scenario)
	if why := r.notJudged(scenario); why != "" && reference.Failure == nil {
		reference.Skipped = &junitSkipped{why}
	}
	if scenario != "" || reference.Failure != nil || reference.SystemOut != nil || reference.Skipped != nil {
		cases = append(cases, reference)
	}
	for _, t := range r.Tried {
		if t.Scenario == scenario {
			counted[t.Kind] = true
			cases = append(cases, r.casesOf(t)...)
		}
	}
	// Include findings whose kind of fault does not have a case yet.
	for _, f := range r.findings(scenario, anyKind) {
		if f.Fault != nil && !counted[f.Fault.Kind] {
			counted[f.Fault.Kind] = true
			c := junitCase{Name: inline(string(f.Fault.Kind))}
			c.fail(r.findings(scenario, f.Fault.Kind))
			cases = append(cases, c)
		}
	}
	return cases
}

// notJudged returns the reason why a scenario has no result, or "". For the name "", it
// returns the reason why the whole check is incomplete.
func (r *Report) notJudged(scenario string) string {
	if scenario == "" {
		return inline(strings.Join(slices.DeleteFunc([]string{r.Idle, r.Stopped}, func(s string) bool { return s == "" }), "; "))
	}
	for _, s := range r.NotLearnt {
		if s.Scenario == scenario {
			return "left out: " + inline(s.Why)
		}
	}
	return ""
}

const anyKind fault.Kind = "*"

// findings returns the serious findings of a scenario and a kind. The kind "" selects
// findings without a fault.
func (r *Report) findings(scenario string, kind fault.Kind) []judge.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f judge.Finding) bool {
		var of fault.Kind
		if f.Fault != nil {
			of = f.Fault.Kind
		}
		return f.Scenario != scenario || kind != anyKind && of != kind
	})
}

func (r *Report) casesOf(t Tried) []junitCase {
	c := junitCase{Name: inline(string(t.Kind)), seconds: t.Seconds}
	c.fail(r.findings(t.Scenario, t.Kind))
	inconclusive := r.why(r.Inconclusive, t)
	switch {
	case c.Failure != nil:
	case t.Clean+t.Pruned == 0:
		c.Skipped = &junitSkipped{r.nothingSaid(t)}
		return []junitCase{c}
	}
	if t.Inconclusive == 0 {
		return []junitCase{c}
	}
	return []junitCase{c, {
		Name:    c.Name + ", inconclusive",
		Skipped: &junitSkipped{fmt.Sprintf("%s without a result: %s", noun.Count(t.Inconclusive, "run"), inconclusive)},
	}}
}

// nothingSaid returns the reason why a kind has no result.
func (r *Report) nothingSaid(t Tried) string {
	var said []string
	for _, part := range []struct {
		what string
		all  []NotRun
	}{{"inconclusive", r.Inconclusive}, {"not applied", r.NotApplied}, {"left out", r.LeftOut}} {
		if why := r.why(part.all, t); why != "" {
			said = append(said, part.what+": "+why)
		}
	}
	if len(said) == 0 {
		return fmt.Sprintf("%d planned, none run", t.Planned)
	}
	return strings.Join(said, "; ")
}

// why returns the reasons why planned faults of this scenario and kind have no
// result.
func (r *Report) why(all []NotRun, t Tried) string {
	own := slices.DeleteFunc(slices.Clone(all), func(n NotRun) bool {
		return n.Fault.Kind != t.Kind || t.Scenario != "" && n.Scenario != t.Scenario
	})
	var said []string
	for _, group := range reasons(own) {
		text := fmt.Sprintf("%d because %s", group.count, group.why)
		if s := group.all[0].Suspicion; s != nil && s.Sentence != "" {
			text += " (unconfirmed: " + inline(s.Sentence) + ")"
		}
		said = append(said, text)
	}
	return strings.Join(said, ", ")
}

func (c *junitCase) fail(findings []judge.Finding) {
	if len(findings) == 0 {
		return
	}
	message := inline(string(findings[0].Verdict)) + ": " + inline(findings[0].Sentence)
	if more := len(findings) - 1; more > 0 {
		message += fmt.Sprintf(" (and %s)", noun.Count(more, "more finding"))
	}
	texts := make([]string, len(findings))
	for i, f := range findings {
		texts[i] = findingText(f)
	}
	c.Failure = &junitFailure{Message: message, Type: inline(string(findings[0].Verdict)), Text: "\n" + strings.Join(texts, "\n")}
}

func remarkText(remarks []judge.Finding, scenario string) *junitText {
	var b strings.Builder
	for _, f := range remarks {
		if f.Scenario == scenario {
			b.WriteString(findingText(f))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return &junitText{"\n" + b.String()}
}

// findingText returns a finding as WriteText shows it in verbose mode.
func findingText(f judge.Finding) string {
	var b strings.Builder
	t := &text{sheet: newSheet(&b, 120, false), verbose: true}
	t.finding(1, f)
	_ = t.w.Flush() // a strings.Builder never fails
	_, after, _ := strings.Cut(b.String(), "1. ")
	return strings.TrimLeft(after, " ")
}
