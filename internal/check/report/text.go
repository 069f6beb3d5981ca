package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/textwidth"
)

// TextOptions defines how a report is displayed on a terminal.
type TextOptions struct {
	// Color enables colors; the caller decides, because it knows the terminal and NO_COLOR.
	Color bool
	// Width is the width in columns; 0 means 80.
	Width int
	// Verbose shows everything: all differences, masked fields and reasons.
	Verbose bool
}

// These constants limit a report that is not verbose.
const (
	mostDifferences = 8
	mostDetail      = 12
	mostReasons     = 6
	mostUnseen      = 4
)

// WriteText writes the report for human readers. No line is wider than the terminal,
// except commands, which must stay on one line so that they can be copied.
func (r *Report) WriteText(w io.Writer, o TextOptions) error {
	t := &text{sheet: newSheet(w, o.Width, o.Color), report: r, verbose: o.Verbose}
	t.head()
	for _, g := range r.groups() {
		t.group(g)
	}
	t.tried()
	t.inputs()
	t.reasons("Not applied", r.NotApplied)
	t.reasons("Inconclusive", r.Inconclusive)
	t.leftOut()
	t.masked()
	t.notes()
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

type text struct {
	*sheet
	report  *Report
	verbose bool
}

func (t *text) head() {
	c := green
	switch {
	case t.report.ExitCode() != 0:
		c = red
	case !t.report.conclusive():
		c = yellow
	}
	t.para(c, "", t.report.outcome())
	if t.report.Subject != "" {
		t.para(dim, "", inline(t.report.Subject))
	}
	if s := t.report.settings(); s != "" {
		t.para(dim, "", s)
	}
	if lines := t.report.preface(); len(lines) > 0 {
		t.gap()
		for _, line := range lines {
			t.para(yellow, "- ", line)
		}
	}
	t.unseen()
}

// unseen names the fields outside status and metadata that are not compared, because a
// difference in them would not be found.
func (t *text) unseen() {
	fields := t.report.unseen()
	shown := fields
	if !t.verbose && len(fields) > mostUnseen {
		shown = fields[:mostUnseen]
	}
	for _, field := range shown {
		t.para(yellow, "", field+" is not compared, because it differed between runs without a fault")
	}
	if more := len(fields) - len(shown); more > 0 {
		t.para(dim, "", noun.Count(more, "more field")+" outside status and metadata not compared; -v lists them")
	}
}

// indent is the indentation below the number of a finding.
const indent = "   "

// group shows findings about the same place below one heading. A group of one needs no heading.
func (t *text) group(g group) {
	if len(g.findings) > 1 {
		t.gap()
		t.para(bold, "", g.heading()+":")
	}
	for _, f := range g.findings {
		t.finding(f.number, f.Finding)
	}
}

func (t *text) finding(n int, f judge.Finding) {
	const in = indent
	t.gap()
	sureColour := dim
	if f.Reproduced < f.Attempts {
		sureColour = yellow
	}
	t.pair(about(f.Verdict).gravity.colour(), fmt.Sprintf("%-3s", fmt.Sprintf("%d.", n)), inline(string(f.Verdict)), sureColour, sure(f))
	t.para(none, in, inline(f.Sentence))
	t.differences(in, f.Differences)
	t.detail(in, f.Detail)
	t.gap()
	t.labelled("input", f.Input)
	t.labelled("last action", f.LastAction)
	t.labelled("where", place(f))
	if len(f.AlsoIn) > 0 {
		t.labelled("also in", "scenario "+strings.Join(f.AlsoIn, ", "))
	}
	t.labelled("fault", faultOf(f))
	t.labelled("recovered", recovery(f))
	t.labelled("also by", alsoBy(f))
	if t.verbose && f.FoundAfterRuns > 0 {
		t.labelled("found after", fmt.Sprintf("%s, %s", noun.Count(f.FoundAfterRuns, "run"), span(seconds(f.FoundAfterSeconds))))
	}
	if f.Replay != "" {
		t.command(bold, in+"replay       ", f.Replay)
	}
	t.toFix(f)
	t.silence(f.Silence)
}

// mostAdvice is the number of lines for the remedy of a finding.
const mostAdvice = 2

// toFix shows the remedy, and when the finding counts as fixed. On a terminal of the usual width,
// the names in it are shortened if they would make it longer than two lines; the full names are
// shown above.
func (t *text) toFix(f judge.Finding) {
	const label = indent + "to fix       "
	advice := strings.TrimSpace(remedy(f) + " Fixed when " + fixedWhen(f) + ".")
	fits := func() bool {
		return t.verbose || t.width < usualWidth || len(textwidth.Wrap(advice, t.width-len(label))) <= mostAdvice
	}
	if place := inline(mainPlace(f)); place != "" && !fits() {
		advice = strings.Replace(advice, place, inline(briefPlace(f)), 1)
	}
	for most := width(advice); !fits() && most > leastName; most -= 4 {
		words := strings.Split(advice, " ")
		for i, word := range words {
			words[i] = textwidth.Elide(word, most, "...")
		}
		advice = strings.Join(words, " ")
	}
	t.para(none, label, advice)
}

// leastName is the number of columns to which a name is shortened at most.
const leastName = 16

func (t *text) labelled(label, text string) {
	if text != "" {
		t.para(none, fmt.Sprintf("%s%-11s  ", indent, label), inline(text))
	}
}

// differences shows each object once, and below it the wanted and the actual value of each
// field.
func (t *text) differences(in string, all []state.Difference) {
	shown := all
	if !t.verbose && len(all) > mostDifferences {
		shown = all[:mostDifferences]
	}
	object, column := "", pathColumn(shown)
	for i, d := range shown {
		if d.Object != object || i == 0 {
			object = d.Object
			t.gap()
			t.para(bold, in, inline(object))
		}
		t.difference(in+"  ", column, d)
	}
	if more := len(all) - len(shown); more > 0 {
		t.para(dim, in+"  ", fmt.Sprintf("and %s; -v shows all", noun.Count(more, "more difference")))
	}
}

const widestPath = 28

// pathColumn returns the width of the longest path that still leaves room for the values
// on the same line.
func pathColumn(all []state.Difference) int {
	column := 0
	for _, d := range all {
		if w := width(pathText(d)); w <= widestPath {
			column = max(column, w)
		}
	}
	return column
}

func (t *text) difference(in string, column int, d state.Difference) {
	path := pathText(d)
	if width(path) > column {
		t.para(none, in, path)
		path = ""
	}
	beside := in + path + strings.Repeat(" ", column-width(path)) + "  "
	t.para(none, beside+"want ", t.value(d.Want))
	t.para(none, strings.Repeat(" ", width(beside))+"got  ", t.value(d.Got))
}

func pathText(d state.Difference) string {
	if d.Path == "" {
		return "the object"
	}
	return inline(d.Path)
}

func (t *text) value(v string) string {
	if t.verbose {
		return orNothing(v)
	}
	return short(orNothing(v), 3*t.width)
}

func (t *text) detail(in, detail string) {
	detail = strings.Trim(plain(detail), "\n")
	if detail == "" {
		return
	}
	t.gap()
	lines := strings.Split(detail, "\n")
	shown := lines
	if !t.verbose && len(lines) > mostDetail {
		shown = lines[:mostDetail]
	}
	for _, line := range shown {
		t.para(none, in+"| ", line)
	}
	if more := len(lines) - len(shown); more > 0 {
		t.para(dim, in+"| ", fmt.Sprintf("... %s; -v shows all", noun.Count(more, "more line")))
	}
}

// columns are the columns of the table of faults.
var columns = []struct {
	title string
	of    func(Tried) int
}{
	{"planned", func(t Tried) int { return t.Planned }},
	{"run", func(t Tried) int { return t.Runs }},
	{"clean", func(t Tried) int { return t.Clean }},
	{"found", func(t Tried) int { return t.Found }},
	{"not applied", func(t Tried) int { return t.NotApplied }},
	{"inconclusive", func(t Tried) int { return t.Inconclusive }},
	{"pruned", func(t Tried) int { return t.Pruned }},
}

func (t *text) tried() {
	kinds, all := t.report.triedByKind()
	t.heading("What was tried")
	rest := fmt.Sprintf("%d to confirm a finding", t.report.Confirmations)
	if t.report.Upgrades > 0 {
		rest = noun.Count(t.report.Upgrades, "upgrade")
	}
	t.para(dim, "  ", fmt.Sprintf("%s: %d without a fault, %s", noun.Count(t.report.Runs, "run"), t.report.References, rest))
	if t.report.Upgrades > 0 {
		t.expected()
		return
	}
	if len(kinds) == 0 {
		t.para(none, "  ", "No fault was planned.")
		return
	}
	header, rows := table(append(kinds, Tried{Kind: "all", Planned: all.Planned, Runs: all.Runs, Clean: all.Clean,
		Found: all.Found, NotApplied: all.NotApplied, Inconclusive: all.Inconclusive, Pruned: all.Pruned}))
	if width(header) > t.width {
		t.triedInWords(kinds)
		return
	}
	t.line(dim, header)
	for i, row := range rows {
		c := none
		if i == len(kinds) {
			c = bold
		} else if kinds[i].Found > 0 {
			c = yellow
		}
		t.line(c, row)
	}
}

// expected lists the changes of an upgrade that the project expects.
func (t *text) expected() {
	if len(t.report.Expected) == 0 {
		return
	}
	t.heading("Expected in the upgrade")
	for _, line := range t.report.Expected {
		t.para(none, "  - ", inline(line))
	}
}

func table(kinds []Tried) (header string, rows []string) {
	first := len("fault")
	for _, k := range kinds {
		first = max(first, width(inline(string(k.Kind))))
	}
	header = "  " + "fault" + strings.Repeat(" ", first-len("fault"))
	rows = make([]string, len(kinds))
	for i, k := range kinds {
		kind := inline(string(k.Kind))
		rows[i] = "  " + kind + strings.Repeat(" ", first-width(kind))
	}
	for _, c := range columns {
		header += "  " + c.title
		for i, k := range kinds {
			count := fmt.Sprint(c.of(k))
			if count == "0" {
				count = "-"
			}
			rows[i] += "  " + fmt.Sprintf("%*s", len(c.title), count)
		}
	}
	return header, rows
}

// triedInWords writes the table for a narrow terminal.
func (t *text) triedInWords(kinds []Tried) {
	for _, k := range kinds {
		var counts []string
		for _, c := range columns {
			if n := c.of(k); n > 0 {
				counts = append(counts, fmt.Sprintf("%d %s", n, c.title))
			}
		}
		t.para(none, "  "+inline(string(k.Kind))+": ", strings.Join(counts, ", "))
	}
}

func (t *text) reasons(title string, all []NotRun) {
	if len(all) == 0 {
		return
	}
	t.heading(title)
	groups := reasons(all)
	shown := groups
	if !t.verbose && len(groups) > mostReasons {
		shown = groups[:mostReasons]
	}
	for _, g := range shown {
		t.para(none, fmt.Sprintf("  %4d  ", g.count), g.why)
		t.para(dim, "        ", strings.Join(g.kinds, ", "))
		if s := g.all[0].Suspicion; s != nil {
			if s.Sentence != "" {
				t.para(none, "        ", "unconfirmed: "+inline(s.Sentence))
			}
			if s.Replay != "" {
				t.command(none, "        ", s.Replay)
			}
		}
		if t.verbose {
			for _, n := range g.all {
				t.para(dim, "          ", inline(n.Scenario)+", "+inline(n.Fault.Point.Step)+": "+faultText(&n.Fault))
			}
		}
	}
	if more := len(groups) - len(shown); more > 0 {
		t.para(dim, "        ", fmt.Sprintf("and %s; -v shows all", noun.Count(more, "more reason")))
	}
}

func (t *text) leftOut() {
	t.reasons("Planned but not run", t.report.LeftOut)
	if len(t.report.LeftOut) > 0 {
		t.para(none, "  ", t.report.howToContinue())
	}
	if n := t.report.LeftToShards; n > 0 {
		t.gap()
		t.para(none, "", fmt.Sprintf("%s left to other shards.", noun.Count(n, "planned fault")))
	}
}

func (t *text) masked() {
	fields := t.report.masked()
	if len(fields) == 0 {
		return
	}
	t.heading("Not compared")
	if !t.verbose {
		objects := t.report.uncompared()
		for _, object := range objects {
			t.para(yellow, "  ", object+": exists at the end of only some of the runs without a fault. Either each run creates a different object, or the runs ended too early: rest.quiet must be longer than the controller's longest pause")
		}
		if n := len(fields) - len(objects); n > 0 {
			t.para(none, "  ", noun.Count(n, "field")+" whose values differ between runs without a fault; -v lists them")
		}
		return
	}
	for _, field := range fields {
		t.para(none, "  ", field)
	}
}

// withInput returns the sentence of a finding, with the input that led to it.
func withInput(f judge.Finding) string {
	if f.Input == "" {
		return f.Sentence
	}
	return f.Sentence + " (input: " + f.Input + ")"
}

func (t *text) notes() {
	remarks := t.report.remarks()
	if len(remarks)+len(t.report.Notes) == 0 {
		return
	}
	t.heading("Notes")
	for _, f := range remarks {
		t.para(none, "  - ", inline(string(f.Verdict))+": "+inline(withInput(f)))
		for _, line := range detailLines(f) {
			t.para(dim, "    ", line)
		}
		if text := recovery(f); text != "" {
			t.para(dim, "    ", "recovered "+text)
		}
		t.remarkSilence(f.Silence)
	}
	for _, note := range t.report.Notes {
		t.para(none, "  - ", strings.TrimSpace(plain(note)))
	}
}

// detailLines returns the non-blank lines in the detail of a finding.
func detailLines(f judge.Finding) []string {
	return slices.DeleteFunc(strings.Split(plain(f.Detail), "\n"), func(line string) bool {
		return strings.TrimSpace(line) == ""
	})
}
