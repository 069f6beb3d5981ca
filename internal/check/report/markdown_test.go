package report

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func markdownOf(t *testing.T, r *Report) string {
	t.Helper()
	return string(written(t, func(b *bytes.Buffer) error {
		return r.WriteMarkdown(b, MarkdownOptions{Whole: "The whole report is in check.html."})
	}))
}

func TestMarkdownIsAsInTheGoldenFiles(t *testing.T) {
	clean := &Report{Subject: "viewer-operator", Seed: 7, Seconds: 42.4, Runs: 60, References: 3,
		Tried: []Tried{{Kind: fault.Restart, Planned: 57, Runs: 57, Clean: 57}}}
	for name, r := range map[string]*Report{"comment.md": sample(), "comment-groups.md": grouped(), "comment-clean.md": clean} {
		golden(t, name, []byte(markdownOf(t, r)))
	}
}

func TestACommentIsCutAfterTheMostSeriousFindings(t *testing.T) {
	r := sample()
	for i := range 500 {
		f := r.Findings[1]
		f.ID, f.Verdict = fmt.Sprint(i), judge.PathDependent
		f.Sentence = strings.Repeat("word ", 40) + fmt.Sprint(i)
		f.Differences = []state.Difference{{Object: fmt.Sprintf("Pod default/%d", i), Path: "spec.x", Want: "1", Got: "2"}}
		r.Findings = append(r.Findings, f)
	}
	r.Sort()
	out := markdownOf(t, r)
	if len(out) > mostMarkdown || len(out) < mostMarkdown-5000 {
		t.Errorf("%d bytes, want nearly %d", len(out), mostMarkdown)
	}
	shown := strings.Count(out, "<details>")
	want := fmt.Sprintf("\n%d more findings were cut, because the comment would be too long. The whole report is in `check.html`.\n", len(r.Findings)-shown)
	if !strings.Contains(out, want) || !strings.Contains(out, "<summary>1. DIVERGED:") || !strings.Contains(out, "**Remarks**") {
		t.Errorf("%d findings are shown, and there is no line %q, or the first finding or the remarks are cut", shown, want)
	}
	if rows := strings.Count(out, "\n| ") - 1; rows != shown {
		t.Errorf("the table has %d rows for %d findings", rows, shown)
	}
}

func TestNamesInASentenceAreCodeAndWordsAreNot(t *testing.T) {
	for text, want := range map[string]string{
		"killed after POST secrets default/a: it is gone, even after a restart": "killed after POST secrets `default/a`: it is gone, even after a restart",
		"Pod default/a has spec.x 1 (not 2).":                                   "Pod `default/a` has `spec.x` 1 (not 2).",
		"cc @octocat, see #12 and GH-12":                                        "cc `@octocat`, see `#12` and `GH-12`",
		"commit deadbeef99 at www.example.com":                                  "commit `deadbeef99` at `www.example.com`",
		"<b> *x* ~y~ :+1:":                                                      "`<b> *x* ~y~ :+1`:",
		"1. first":                                                              "`1`. first",
	} {
		if got := prose(text, 400, code); got != want {
			t.Errorf("%q is written as %q, want %q", text, got, want)
		}
	}
}

// TestCodeIsShownAsItIs reads code spans as CommonMark defines them.
func TestCodeIsShownAsItIs(t *testing.T) {
	for _, text := range []string{"a", "`", "``", "a`b", "`a", "a``", "a\\", "\\`", "a|b", "<b>", "@octocat", "a  b"} {
		rest, spans := stripCode(code(text))
		if rest != "" || len(spans) != 1 || spans[0] != text {
			t.Errorf("%q is written as %q, which is shown as %q and %q", text, code(text), spans, rest)
		}
	}
}

// hostileMarkdown are texts that would change a comment if they were not escaped.
var hostileMarkdown = []string{
	hostile, "@octocat", "x @octocat y", "org/team#12", "#12", "GH-12", "https://example.com", "www.example.com", "me@example.com",
	"|", "a|b", `a\|b`, `\`, "`", "``` ` ```", "`@octocat`", "<details>", "</details>", "</summary>", "<!--", "-->", "<img src=x>",
	"[a](http://b)", "![a](b)", "# head", "- item", "1. item", "> quote", "***", "---", "&lt;b&gt;", "&#64;octocat", "~~~", "~~~\n@octocat",
	"```\n@octocat\n```", "\n\n@octocat\n\n", "\r\n| a |\r\n", "$x$", ":tada:", "a\u2028b", "deadbeefdeadbeef", "[^1]: x", "\u200b@octocat", "www", "0123456'x", "",
}

// infect puts a text into every field of a report that comes from the cluster or the controller.
func infect(r *Report, text string) {
	r.Subject, r.Command, r.Shard, r.Stopped, r.Idle = text, text, text, text, text
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Sentence, f.Detail, f.LastAction, f.Replay, f.Scenario, f.Step = text, text, text, text, text, text
		f.Differences = []state.Difference{{Object: text, Path: text, Want: text, Got: text}, {Object: "Pod " + text, Path: "spec." + text}}
		if f.Fault != nil {
			copied := *f.Fault
			copied.Point.Object, copied.Target = text, text
			f.Fault = &copied
		}
	}
	frame, loop := r.Findings[0], r.Findings[0]
	frame.Differences, frame.Verdict, frame.Frame = nil, judge.Crashed, text
	loop.Differences, loop.Verdict, loop.Request = nil, judge.HotLoop, text
	late := judge.Finding{Verdict: judge.Verdict(text), Sentence: text}
	r.Findings = append(r.Findings, frame, loop, late)
	r.Remarks = append(r.Remarks, late)
	r.NotLearnt = append(r.NotLearnt, NotLearnt{text, text})
	r.Fixed = append(r.Fixed, Fixed{text, judge.Verdict(text), text, text})
	r.Scenarios[0].Unseen, r.Scenarios[0].Masked = []string{text}, []string{text + state.WholeObject}
	for _, all := range [][]NotRun{r.NotApplied, r.Inconclusive, r.LeftOut} {
		for i := range all {
			all[i].Why, all[i].Scenario = text, text
		}
	}
}

func TestNothingFromTheClusterChangesAComment(t *testing.T) {
	for _, text := range hostileMarkdown {
		r := sample()
		infect(r, text)
		for _, problem := range problemsOf(markdownOf(t, r), len(r.Findings)) {
			t.Errorf("%q: %s", text, problem)
		}
	}
}

func TestACommentHasALimitWhateverItContains(t *testing.T) {
	for _, piece := range []string{"a", "`|\u0301@x ", "\U0010FFFF", "\u202e", "<&>'\"", "a\n"} {
		r := sample()
		infect(r, strings.Repeat(piece, 4000/len(piece)))
		for range 30 {
			r.Findings, r.Remarks = append(r.Findings, r.Findings[0]), append(r.Remarks, r.Remarks[0])
			r.NotLearnt = append(r.NotLearnt, NotLearnt{fmt.Sprint(len(r.NotLearnt)) + piece, r.Subject[:len(r.Subject)-len(r.NotLearnt)*len(piece)]})
		}
		out := markdownOf(t, r)
		for _, problem := range problemsOf(out, strings.Count(out, "\n<details>\n")) {
			t.Errorf("%q: %s", piece, problem)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, text := range hostileMarkdown {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := sample()
		infect(r, text)
		for _, problem := range problemsOf(markdownOf(t, r), len(r.Findings)) {
			t.Error(problem)
		}
	})
}

var (
	// ownTags are the tags of a comment.
	ownTags = regexp.MustCompile(`</?(?:details|summary|code)>`)
	// ours matches the lines that a comment may have outside of code, without their code.
	ours = regexp.MustCompile(`^(?:` + strings.Join([]string{
		`<!-- koboshi-check -->`, `\*\*koboshi check\*\*(?: of )?: .*\.`, `- .*`, `\|(?:[^|]*\|){5}`, `<details>`, `</details>`, `<summary>\d+\. .*</summary>`,
		`Replay:`, `\*\*(?:Remarks|Not covered)\*\*`, `Findings \d+ (?:to|and) \d+ concern.*:`,
		`\d+ more findings? (?:was|were) cut, because the comment would be too long\. .*`,
	}, "|") + `)?$`)
	// label matches the bold labels in the list of a finding's facts.
	label = regexp.MustCompile(`^- \*\*(?:Fault|Recovered|Where|Last action|Also by|To fix|Fixed when):\*\* `)
	// unsafe matches what a site would interpret: mentions, issues, links, hashes, emphasis,
	// entities, and characters that are not shown.
	unsafe = regexp.MustCompile("@|#|://|(?i:www\\.)|[<>&*_~`\\[\\]$\\\\]|\\b[0-9a-fA-F]{7,}\\b|:[a-z0-9_+-]+:|\\p{Cc}|\\p{Cf}")
)

// problemsOf checks a comment line by line, by the rules of GitHub's Markdown: it removes what is
// code, and checks that nothing is left but the comment's own form and plain words.
func problemsOf(comment string, findings int) (problems []string) {
	if len(comment) > mostMarkdown || !strings.HasPrefix(comment, Marker+"\n\n") {
		problems = append(problems, fmt.Sprintf("%d bytes, beginning %.30q", len(comment), comment))
	}
	fence, open, shown, rows := "", false, 0, 0
	for number, line := range strings.Split(comment, "\n") {
		switch {
		case fence != "":
			if strings.TrimRight(line, " ") == fence {
				fence = ""
			} else if strings.HasPrefix(strings.TrimLeft(line, " "), fence) {
				problems = append(problems, fmt.Sprintf("line %d may end the block: %q", number+1, line))
			}
			continue
		case strings.HasPrefix(line, "```"):
			if fence = line; strings.Trim(line, "`") != "" {
				problems = append(problems, fmt.Sprintf("line %d is no fence: %q", number+1, line))
			}
			continue
		}
		rest := line
		if strings.HasPrefix(line, "| ") {
			rows++
			if cells := pipes(line); cells != 6 {
				problems = append(problems, fmt.Sprintf("line %d has %d pipes: %q", number+1, cells, line))
			}
			rest = strings.ReplaceAll(line, `\|`, "p")
		}
		if strings.HasPrefix(line, "<summary>") {
			rest = regexp.MustCompile(`<code>[^<>]*</code>`).ReplaceAllString(line, "")
			if strings.Contains(rest, "`") {
				problems = append(problems, fmt.Sprintf("line %d: Markdown has no effect in a summary: %q", number+1, line))
			}
		} else {
			rest, _ = stripCode(rest)
		}
		if line == "<details>" || line == "</details>" {
			if open == (line == "<details>") {
				problems = append(problems, fmt.Sprintf("line %d: details in details, or none to close", number+1))
			}
			if open = !open; open {
				shown++
			}
		}
		if !ours.MatchString(rest) {
			problems = append(problems, fmt.Sprintf("line %d has another form: %q", number+1, line))
		}
		if rest == Marker {
			continue
		}
		rest = label.ReplaceAllString(rest, "")
		for _, own := range []string{"**koboshi check**", "**Remarks**", "**Not covered**"} {
			rest = strings.TrimPrefix(rest, own)
		}
		if found := unsafe.FindString(ownTags.ReplaceAllString(rest, "")); found != "" {
			problems = append(problems, fmt.Sprintf("line %d has %q outside of code: %q", number+1, found, line))
		}
	}
	if fence != "" || open {
		problems = append(problems, "a block is not closed")
	}
	if rows != shown+1 || shown != findings {
		problems = append(problems, fmt.Sprintf("%d rows and %d details for %d findings", rows, shown, findings))
	}
	return problems
}

// pipes counts the pipes of a row that may end a cell. Parsers agree only about a pipe with exactly
// one backslash before it, which does not end a cell.
func pipes(line string) (n int) {
	for i, r := range line {
		if before := line[:i]; r == '|' && (!strings.HasSuffix(before, `\`) || strings.HasSuffix(before, `\\`)) {
			n++
		}
	}
	return n
}

// stripCode removes the code spans from a line, as CommonMark defines them: a run of backticks opens
// a span if a run of the same length follows.
func stripCode(line string) (rest string, spans []string) {
	runs := regexp.MustCompile("`+").FindAllStringIndex(line, -1)
	var out strings.Builder
	at := 0
	for i := 0; i < len(runs); i++ {
		length := runs[i][1] - runs[i][0]
		end := slices.IndexFunc(runs[i+1:], func(run []int) bool { return run[1]-run[0] == length })
		if end < 0 {
			continue
		}
		closing := runs[i+1+end]
		out.WriteString(line[at:runs[i][0]])
		span := line[runs[i][1]:closing[0]]
		if strings.HasPrefix(span, " ") && strings.HasSuffix(span, " ") && strings.Trim(span, " ") != "" {
			span = span[1 : len(span)-1]
		}
		spans = append(spans, span)
		at = closing[1]
		i += 1 + end
	}
	return out.String() + line[at:], spans
}
