package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/noun"
)

// MarkdownOptions describes where a comment of a pull request is shown.
type MarkdownOptions struct {
	// Whole tells readers where the whole report is, as a sentence. The sentence is used only if
	// findings do not fit into the comment.
	Whole string
}

const (
	// Marker is the first line of a comment. A program finds its earlier comment by this line, and
	// replaces it.
	Marker = "<!-- koboshi-check -->"
	// mostMarkdown is the maximum size of a comment in bytes. GitHub accepts 65,536 characters.
	mostMarkdown = 60_000
	// These constants limit a comment, whatever its findings contain.
	mostInComment = 6   // the number of lines of a list
	mostSentence  = 400 // characters
	mostValue     = 160 // characters of a name, a value or a line
	mostCommand   = 2000
)

// WriteMarkdown writes the report as a comment for a pull request, in the dialect of GitHub. Text
// from the cluster or from the controller cannot change the form of the comment, mention anybody or
// link to anything; see prose and code.
func (r *Report) WriteMarkdown(w io.Writer, o MarkdownOptions) error {
	if _, err := io.WriteString(w, r.comment(o, mostMarkdown)); err != nil {
		return fmt.Errorf("writing the report as Markdown: %w", err)
	}
	return nil
}

// comment returns a comment of at most the given number of bytes. If not all findings fit, it cuts
// the last ones, which are the least serious.
func (r *Report) comment(o MarkdownOptions, most int) string {
	head, tail := r.commentHead(), r.commentTail()
	entries := r.commentEntries()
	size := len(head) + len(tableHead) + len(tail) + len(cutLine(len(entries), o.Whole))
	n := 0
	for n < len(entries) && size+len(entries[n].row)+len(entries[n].details) <= most {
		size += len(entries[n].row) + len(entries[n].details)
		n++
	}
	var b strings.Builder
	b.WriteString(head)
	if n > 0 {
		b.WriteString(tableHead)
	}
	for _, e := range entries[:n] {
		b.WriteString(e.row)
	}
	for _, e := range entries[:n] {
		b.WriteString(e.details)
	}
	if cut := len(entries) - n; cut > 0 {
		b.WriteString(cutLine(cut, o.Whole))
	}
	b.WriteString(tail)
	return b.String()
}

// tableHead is the head of the table of findings.
const tableHead = "\n| | verdict | object | field or place | to fix |\n|---:|---|---|---|---|\n"

func cutLine(cut int, whole string) string {
	line := fmt.Sprintf("\n%s cut, because the comment would be too long.", noun.Count(cut, "more finding")+was(cut))
	if whole != "" {
		line += " " + prose(whole, mostSentence, code)
	}
	return line + "\n"
}

func was(n int) string {
	if n == 1 {
		return " was"
	}
	return " were"
}

// commentHead returns the marker, the outcome, and what a reader must know to judge it.
func (r *Report) commentHead() string {
	subject := ""
	if r.Subject != "" {
		subject = " of " + code(inline(r.Subject))
	}
	head := Marker + "\n\n**koboshi check**" + subject + ": " + prose(r.outcome(), mostSentence, code) + ".\n"
	head += bullets(r.preface())
	if len(r.Expected) > 0 {
		head += "\n**This upgrade changes existing objects on purpose:**\n" + bullets(r.Expected)
	}
	return head
}

// bullets returns a list of texts, and the number of those that are left out.
func bullets(lines []string) string {
	list := ""
	for i, line := range lines {
		if i == mostInComment && len(lines) > mostInComment+1 {
			list += fmt.Sprintf("- and %d more\n", len(lines)-i)
			break
		}
		list += "- " + prose(line, mostSentence, code) + "\n"
	}
	if list != "" {
		list = "\n" + list
	}
	return list
}

// commentEntry is a finding in a comment: its row of the table, and its details. The first finding
// of a group has the heading of the group before its details.
type commentEntry struct{ row, details string }

func (r *Report) commentEntries() []commentEntry {
	var all []commentEntry
	for _, g := range r.groups() {
		for i, f := range g.findings {
			e := commentEntry{rowOf(f), detailsOf(f)}
			if i == 0 && len(g.findings) > 1 {
				e.details = "\n" + prose(g.heading(), mostSentence, code) + ":\n" + e.details
			}
			all = append(all, e)
		}
	}
	return all
}

func rowOf(f numbered) string {
	object, path := f.Place()
	if path == "" {
		path = commonPlace(f.Finding)
		if len(f.Differences) > 0 {
			path = "the object"
		}
	}
	if path == "" {
		path = place(f.Finding)
	}
	cells := []string{
		prose(string(f.Verdict), mostValue, cell), cell(object), prose(path, mostValue, cell), prose(remedy(f.Finding), mostSentence, cell),
	}
	return fmt.Sprintf("| %d | %s |\n", f.number, strings.Join(cells, " | "))
}

// detailsOf returns the details of a finding, folded.
func detailsOf(f numbered) string {
	var b strings.Builder
	summary := prose(string(f.Verdict)+": "+f.Sentence, mostSentence, codeInHTML)
	if s := sure(f.Finding); s != "" {
		summary += " (" + s + ")"
	}
	fmt.Fprintf(&b, "\n<details>\n<summary>%d. %s</summary>\n\n", f.number, summary)
	for i, d := range f.Differences {
		if i == mostDifferences {
			fmt.Fprintf(&b, "- and %s\n", noun.Count(len(f.Differences)-i, "more difference"))
			break
		}
		fmt.Fprintf(&b, "- %s, %s: want %s, got %s\n", code(d.Object), prose(pathText(d), mostValue, code), valueInComment(d.Want), valueInComment(d.Got))
	}
	for _, known := range []fact{
		{"Fault", faultOf(f.Finding)}, {"Recovered", recovery(f.Finding)}, {"Where", place(f.Finding)}, {"Input", f.Input}, {"Last action", f.LastAction}, {"Also by", alsoBy(f.Finding)},
		{"To fix", remedy(f.Finding)}, {"Fixed when", fixedWhen(f.Finding)},
	} {
		if known.Value != "" {
			fmt.Fprintf(&b, "- **%s:** %s\n", known.Name, prose(known.Value, mostSentence, code))
		}
	}
	b.WriteString(fenced(detailInComment(f.Detail)))
	if f.Replay != "" {
		b.WriteString("\nReplay:\n" + fenced([]string{brief(f.Replay, mostCommand)}))
	}
	b.WriteString("\n</details>\n")
	return b.String()
}

func valueInComment(value string) string {
	if value == "" {
		return "nothing"
	}
	return code(value)
}

// detailInComment returns the first lines of a detail.
func detailInComment(detail string) []string {
	detail = strings.Trim(plain(detail), "\n")
	if detail == "" {
		return nil
	}
	lines := strings.Split(detail, "\n")
	if more := len(lines) - mostDetail; more > 0 {
		lines = append(slices.Clone(lines[:mostDetail]), fmt.Sprintf("... %s", noun.Count(more, "more line")))
	}
	for i := range lines {
		lines[i] = brief(expand(lines[i]), mostValue)
	}
	return lines
}

// commentTail returns the remarks, and what the check does not cover.
func (r *Report) commentTail() string {
	tail := ""
	var remarks []string
	for _, f := range r.remarks() {
		remarks = append(remarks, string(f.Verdict)+": "+withInput(f))
	}
	if list := bullets(remarks); list != "" {
		tail += "\n**Remarks**\n" + list
	}
	if list := bullets(r.notCovered()); list != "" {
		tail += "\n**Not covered**\n" + list
	}
	return tail
}

// notCovered describes what the check could not judge, one line for each kind of gap.
func (r *Report) notCovered() (lines []string) {
	for _, part := range []struct {
		thing, what string
		all         []NotRun
	}{{"run", "inconclusive", r.Inconclusive}, {"planned fault", "not applied", r.NotApplied}, {"planned fault", "not run", r.LeftOut}} {
		if groups := reasons(part.all); len(groups) > 0 {
			line := fmt.Sprintf("%s %s: %s", noun.Count(len(part.all), part.thing), part.what, groups[0].why)
			if more := len(groups) - 1; more > 0 {
				line += ", and " + noun.Count(more, "other reason")
			}
			lines = append(lines, line)
		}
	}
	if n := len(r.uncompared()); n > 0 {
		lines = append(lines, noun.Count(n, "object")+" not compared: missing at the end of some runs without a fault")
	}
	if fields := r.unseen(); len(fields) > 0 {
		lines = append(lines, "fields not compared, because they differed between runs without a fault: "+some(fields))
	}
	return lines
}
