package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

//go:embed page/page.html
var pageSource string

//go:embed page/page.css
var pageStyle string

//go:embed page/page.js
var pageScript string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// openFindings is the number of findings that are unfolded initially.
const openFindings = 3

// These types hold the data of the page template. All text in the data has already been
// escaped by plain or inline.
type (
	pageView struct {
		Policy       string
		Style        template.CSS
		Script       template.JS
		Outcome      string
		Clean        bool
		Facts        []fact
		Groups       []groupView
		Columns      []string
		Tried        []triedView
		Reasons      []reasonsView
		LeftToShards int
		Scenarios    []scenarioView
		Remarks      []findingView
		Notes        []string
	}
	fact      struct{ Name, Value string }
	groupView struct {
		Heading  string // "" in a group of one
		Findings []findingView
	}
	findingView struct {
		Number                    int
		Anchor, Verdict, Sentence string
		Gravity                   gravity
		Meaning, Cause            string
		Sure                      string
		Unsure, Open              bool
		Facts                     []fact
		Differences               []differenceView
		Detail, Remedy            string
		Replay                    string
		Silence, SilenceWrong     string
		Timeline                  *timeline
		Strip                     strip
	}
	differenceView struct {
		Object, Path, Want, Got string
	}
	triedView struct {
		Kind   string
		Counts []int
		All    bool
		Found  bool
	}
	reasonsView struct {
		Title  string
		Groups []reasonView
	}
	reasonView struct {
		Count      int
		Why, Kinds string
		All        []string
	}
	scenarioView struct {
		Name, Kind, Took string
		Steps, Writes    int
		Masked           []string
	}
)

// WriteHTML writes a self-contained page, which needs no server and no other file, and
// can be read without JavaScript. traces holds the traces of the findings, keyed by ID. A
// finding without a trace has no timeline.
func (r *Report) WriteHTML(w io.Writer, traces map[string][]trace.Entry) error {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, r.page(traces)); err != nil {
		return fmt.Errorf("writing the report as HTML: %w", err)
	}
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("writing the report as HTML: %w", err)
	}
	return nil
}

// policy returns a Content-Security-Policy that allows only the style and the script of
// the page itself, by their hashes. It also allows data URLs for images: the page contains
// an empty icon as a data URL, which keeps browsers from requesting an icon.
func policy() string {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return strings.Join([]string{
		"default-src 'none'", "style-src " + hash(pageStyle), "script-src " + hash(pageScript),
		"img-src data:", "base-uri 'none'", "form-action 'none'",
	}, "; ")
}

func (r *Report) page(traces map[string][]trace.Entry) pageView {
	v := pageView{
		Policy: policy(), Style: template.CSS(pageStyle), Script: template.JS(pageScript),
		Outcome: r.outcome(), Clean: r.ExitCode() == 0 && r.conclusive(),
		Facts: r.facts(), LeftToShards: r.LeftToShards,
	}
	for _, g := range r.groups() {
		v.Groups = append(v.Groups, viewOfGroup(g, traces))
	}
	for _, f := range r.remarks() {
		v.Remarks = append(v.Remarks, viewOf(f, nil))
	}
	v.tried(r)
	for _, group := range []struct {
		title string
		all   []NotRun
	}{{"Not applied", r.NotApplied}, {"Inconclusive", r.Inconclusive}, {"Planned but not run", r.LeftOut}} {
		if len(group.all) > 0 {
			v.Reasons = append(v.Reasons, reasonsOf(group.title, group.all))
		}
	}
	for _, s := range r.Scenarios {
		view := scenarioView{Name: inline(s.Name), Kind: inline(s.Kind), Took: span(seconds(s.Seconds)), Steps: s.Steps, Writes: s.Writes}
		for _, field := range s.Masked {
			view.Masked = append(view.Masked, inline(field))
		}
		v.Scenarios = append(v.Scenarios, view)
	}
	for _, note := range r.Notes {
		v.Notes = append(v.Notes, plain(note))
	}
	return v
}

func (r *Report) facts() []fact {
	all := []fact{{"Controller", inline(r.Subject)}, {"Command", inline(r.Command)}}
	if !r.Started.IsZero() {
		all = append(all, fact{"Started", r.Started.UTC().Format("2006-01-02 15:04:05 UTC")})
	}
	if r.Profile != "" {
		all = append(all, fact{"Profile", inline(r.Profile)})
	}
	if s := r.settings(); s != "" {
		all = append(all, fact{"Settings", strings.TrimPrefix(s, "settings ")})
	}
	if lines := r.preface(); len(lines) > 0 {
		all = append(all, fact{"Important", strings.Join(lines, "; ")})
	}
	all = append(all, fact{"Runs", fmt.Sprintf("%d, including %d without a fault and %d to confirm a finding",
		r.Runs, r.References, r.Confirmations)})
	for _, field := range r.unseen() {
		all = append(all, fact{"Not compared", field + ", because it differed between runs without a fault"})
	}
	return all
}

func viewOfGroup(g group, traces map[string][]trace.Entry) groupView {
	var v groupView
	if len(g.findings) > 1 {
		v.Heading = g.heading()
	}
	for _, f := range g.findings {
		view := viewOf(f.Finding, traces[f.ID])
		view.Number, view.Open = f.number, f.number <= openFindings
		view.Anchor = fmt.Sprintf("finding-%d", f.number)
		v.Findings = append(v.Findings, view)
	}
	return v
}

func viewOf(f judge.Finding, entries []trace.Entry) findingView {
	v := about(f.Verdict)
	view := findingView{
		Verdict: inline(string(f.Verdict)), Sentence: inline(f.Sentence), Gravity: v.gravity,
		Meaning: v.meaning, Cause: v.cause,
		Sure: sure(f), Unsure: f.Reproduced < f.Attempts,
		Detail: strings.Trim(plain(f.Detail), "\n"), Remedy: remedy(f), Replay: inline(f.Replay),
	}
	for _, known := range []fact{
		{"Input", inline(f.Input)}, {"Last action", inline(f.LastAction)}, {"Where", place(f)}, {"Fault", faultOf(f)}, {"Recovered", recovery(f)}, {"Also by", alsoBy(f)},
		{"To fix", remedy(f)}, {"Fixed when", fixedWhen(f)}, {"Seed", fmt.Sprint(f.Seed)}, {"File", inline(f.File)},
	} {
		if known.Value != "" {
			view.Facts = append(view.Facts, known)
		}
	}
	for _, d := range f.Differences {
		view.Differences = append(view.Differences, differenceView{inline(d.Object), pathText(d), orNothing(d.Want), orNothing(d.Got)})
	}
	if f.Silence != nil {
		view.Silence, view.SilenceWrong = silenceLines(f.Silence), inline(f.Silence.Wrong)
	}
	if len(entries) > 0 {
		t := timelineOf(entries)
		view.Timeline, view.Strip = &t, stripOf(t)
	}
	return view
}

func (v *pageView) tried(r *Report) {
	for _, c := range columns {
		v.Columns = append(v.Columns, c.title)
	}
	kinds, all := r.triedByKind()
	if len(kinds) == 0 {
		return
	}
	for i, k := range append(kinds, all) {
		view := triedView{Kind: inline(string(k.Kind)), All: i == len(kinds), Found: k.Found > 0}
		if view.All {
			view.Kind = "all"
		}
		for _, c := range columns {
			view.Counts = append(view.Counts, c.of(k))
		}
		v.Tried = append(v.Tried, view)
	}
}

func reasonsOf(title string, all []NotRun) reasonsView {
	view := reasonsView{Title: title}
	for _, g := range reasons(all) {
		group := reasonView{Count: g.count, Why: g.why, Kinds: strings.Join(g.kinds, ", ")}
		for _, n := range g.all {
			group.All = append(group.All, inline(n.Scenario)+", "+inline(n.Fault.Point.Step)+": "+faultText(&n.Fault))
		}
		view.Groups = append(view.Groups, group)
	}
	return view
}
