package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestTextIsAsInTheGoldenFiles(t *testing.T) {
	clean := &Report{Subject: "viewer-operator", Seed: 7, Seconds: 42.4, Runs: 60, References: 3,
		Scenarios: sample().Scenarios[:1], Tried: []Tried{{Kind: fault.Restart, Planned: 57, Runs: 57, Clean: 57}}}
	tests := map[string]struct {
		report  *Report
		options TextOptions
	}{
		"findings.txt":        {sample(), TextOptions{}},
		"findings-color.txt":  {sample(), TextOptions{Color: true}},
		"findings-narrow.txt": {sample(), TextOptions{Width: 50}},
		"findings-all.txt":    {sample(), TextOptions{Width: 100, Verbose: true}},
		"clean.txt":           {clean, TextOptions{}},
		"nothing.txt":         {&Report{Subject: "viewer-operator", Runs: 3, References: 3}, TextOptions{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			golden(t, name, written(t, func(b *bytes.Buffer) error { return test.report.WriteText(b, test.options) }))
		})
	}
}

func TestNoLineOfTextIsWiderThanTheTerminalButCommands(t *testing.T) {
	r := sample()
	r.Findings[0].Sentence += " " + strings.Repeat("x", 300) + strings.Repeat(" 日本語", 40)
	r.Findings[0].Detail = strings.Repeat("panic: "+strings.Repeat("y", 90)+"\n\tmain.go:12\n", 9)
	r.Findings[0].Differences[0].Path = strings.Repeat("spec.very.long", 20)
	r.Findings[0].Differences[1].Got = strings.Repeat("z", 2000)
	r.Findings[0].Silence.Add += "  - " + strings.Repeat("w", 300) + " *\n"
	for _, width := range []int{40, 57, 80, 120} {
		for _, verbose := range []bool{false, true} {
			out := written(t, func(b *bytes.Buffer) error { return r.WriteText(b, TextOptions{Width: width, Verbose: verbose}) })
			for line := range strings.SplitSeq(string(out), "\n") {
				if wide := columnsOf(line); wide > width && !strings.Contains(line, "koboshi check replay") && !strings.Contains(r.Findings[0].Silence.Add, strings.TrimLeft(line, " ")) {
					t.Errorf("width %d, verbose %v: a line of %d columns: %s", width, verbose, wide, line)
				}
			}
		}
	}
}

// columnsOf computes the width of a line independently of the code under test. The only
// wide characters in these tests are Japanese.
func columnsOf(line string) int {
	n := 0
	for _, r := range line {
		n++
		if r > 0x2E80 {
			n++
		}
	}
	return n
}

func TestReplayCommandStaysInOneLineSoItCanBeCopied(t *testing.T) {
	r := sample()
	r.Findings[0].Replay = "koboshi check replay " + strings.Repeat("long/", 40) + "x.json"
	out := written(t, func(b *bytes.Buffer) error { return r.WriteText(b, TextOptions{Width: 40}) })
	if !bytes.Contains(out, []byte(r.Findings[0].Replay+"\n")) {
		t.Errorf("the command is not whole:\n%s", out)
	}
}

func TestTextFromTheClusterCannotSteerATerminalOrACI(t *testing.T) {
	r := sample()
	r.Subject = hostile
	r.Findings[0].Sentence = "::stop-commands::x"
	r.Findings[0].Detail = hostile + "\n##[group]x\n##vso[task.setvariable]x\r\n  ::set-env::x\r"
	r.Findings[0].Differences = []state.Difference{{Object: hostile, Path: hostile, Want: hostile}}
	r.Findings[0].LastAction, r.Findings[0].Replay = hostile, hostile
	r.NotApplied[0].Why, r.NotApplied[1].Scenario = hostile, hostile
	r.Scenarios[0].Masked[0], r.Notes[0] = hostile, hostile
	r.Tried[0].Kind = hostile
	out := string(written(t, func(b *bytes.Buffer) error { return r.WriteText(b, TextOptions{Verbose: true}) }))
	for line := range strings.SplitSeq(out, "\n") {
		if bad := strings.IndexFunc(line, func(r rune) bool { return r < ' ' || r >= 0x7F && r < 0xA0 || r == '\u202e' }); bad >= 0 {
			t.Errorf("a control character at %d of %q", bad, line)
		}
		if strings.HasPrefix(strings.TrimLeft(line, " "), "::") || strings.Contains(line, "##[") || strings.Contains(line, "##vso[") {
			t.Errorf("a CI would obey %q", line)
		}
	}
	if !strings.Contains(out, `\x1b]0;owned\x07\u202e\x9bb`) {
		t.Errorf("the escapes cannot be seen:\n%s", out)
	}
}

func TestColoursAreWrittenOnlyIfAskedFor(t *testing.T) {
	plain := written(t, func(b *bytes.Buffer) error { return sample().WriteText(b, TextOptions{}) })
	coloured := written(t, func(b *bytes.Buffer) error { return sample().WriteText(b, TextOptions{Color: true}) })
	if bytes.Contains(plain, []byte("\x1b")) || !bytes.Contains(coloured, []byte("\x1b[1;31m")) {
		t.Errorf("escapes without colours %v, red with colours %v", bytes.Contains(plain, []byte("\x1b")), bytes.Contains(coloured, []byte("\x1b[1;31m")))
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk is full") }

func TestEveryWriterSaysThatItCouldNotWrite(t *testing.T) {
	r := sample()
	for name, err := range map[string]error{
		"text": r.WriteText(full{}, TextOptions{}), "JSON": r.WriteJSON(full{}), "JUnit": r.WriteJUnit(full{}),
		"SARIF": r.WriteSARIF(full{}, SARIFOptions{}), "Markdown": r.WriteMarkdown(full{}, MarkdownOptions{}), "HTML": r.WriteHTML(full{}, nil),
	} {
		if err == nil || !strings.Contains(err.Error(), "disk is full") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMostSeriousFindingIsFirstAndEqualOnesKeepTheirOrder(t *testing.T) {
	r := &Report{Findings: []judge.Finding{
		{ID: "1", Verdict: judge.RBACMissing}, {ID: "2", Verdict: judge.HotLoop}, {ID: "3", Verdict: judge.Diverged},
		{ID: "4", Verdict: judge.HotLoop}, {ID: "5", Verdict: "OF TOMORROW"}, {ID: "6", Verdict: judge.Diverged},
	}}
	r.Sort()
	order := ""
	for _, f := range r.Findings {
		order += f.ID
	}
	if order != "362415" {
		t.Errorf("the order is %s", order)
	}
}

func TestUnusedPermissionsAloneAreNoFailure(t *testing.T) {
	tests := map[string]struct {
		verdicts []judge.Verdict
		unused   []judge.Unused
		want     int
	}{
		"nothing":          {nil, nil, 0},
		"unused only":      {nil, unused(), 0},
		"missing":          {[]judge.Verdict{judge.RBACMissing}, nil, 1},
		"unused and other": {[]judge.Verdict{judge.Leak}, unused(), 1},
	}
	for name, test := range tests {
		r := &Report{Unused: test.unused}
		for _, v := range test.verdicts {
			r.Findings = append(r.Findings, judge.Finding{Verdict: v})
		}
		if got := r.ExitCode(); got != test.want {
			t.Errorf("%s: exit code %d, want %d", name, got, test.want)
		}
	}
}

func TestAnObjectThatIsNotComparedIsToldInTheFirstLine(t *testing.T) {
	r := &Report{Runs: 5, References: 3, Scenarios: []Scenario{{Name: "life", Masked: []string{"ConfigMap default/page" + state.WholeObject, "Site.x status.at"}}}}
	var out bytes.Buffer
	if err := r.WriteText(&out, TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(out.String(), "\n")
	if !strings.HasSuffix(first, "; 1 object not compared") {
		t.Errorf("the first line is %q", first)
	}
	if !strings.Contains(rest, "ConfigMap default/page") || !strings.Contains(rest, "1 field whose") {
		t.Errorf("the object is not named:\n%s", rest)
	}
}
