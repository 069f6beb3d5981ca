package actions

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/report"
)

const upload = "github/codeql-action/upload-sarif"

// pipeline is a run of the action check in a pull request.
type pipeline struct {
	*runner
	hub       *hub
	arguments string // the file with the arguments of koboshi
}

// newPipeline returns a pull request in which koboshi check has this result: a report, or a number.
func newPipeline(t *testing.T, result any) *pipeline {
	t.Helper()
	p := &pipeline{runner: newRunner(t), hub: newHub(t)}
	p.arguments = filepath.Join(p.temp, "arguments")
	p.path = installed(t) + string(os.PathListSeparator) + p.path
	p.github["event.pull_request.number"], p.github["event.pull_request.head.sha"] = "7", "fedcba9876543210"
	p.github["token"] = secret
	var text string
	switch result := result.(type) {
	case *report.Report:
		text = saved(t, result, filepath.Join(p.temp, "result.json"))
	case string:
		text = result
	default:
		t.Fatalf("a result of the type %T", result)
	}
	p.env = []string{"GITHUB_API_URL=" + p.hub.address, resultVariable + "=" + text, argumentsVariable + "=" + p.arguments}
	return p
}

// written returns the body of the only comment.
func (p *pipeline) written() string {
	p.t.Helper()
	if len(p.hub.comments) != 1 {
		p.t.Fatalf("there are %d comments: %+v", len(p.hub.comments), p.hub.comments)
	}
	return p.hub.comments[0].Body
}

func mustContain(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

func TestACleanCheckSucceedsAndIsPublished(t *testing.T) {
	p := newPipeline(t, clean())
	r := p.run("check", nil)
	if r.code != 0 || r.outputs["exit-code"] != "0" {
		t.Errorf("exit code %d, output %q; log:\n%s", r.code, r.outputs["exit-code"], r.log)
	}
	mustContain(t, "the comment", p.written(), "**koboshi check** of `operator`", "of commit fedcba9876543210", "https://github.example/team/operator/actions/runs/4711")
	mustContain(t, "the summary", r.summary, "**koboshi check** of `operator`")
	if len(r.calls) != 1 || !strings.HasPrefix(r.calls[0].uses, upload) || r.calls[0].with["sarif_file"] != r.outputs["sarif"] {
		t.Errorf("the calls are %+v, and the report is %s", r.calls, r.outputs["sarif"])
	}
	for _, form := range []string{"json", "sarif", "html", "junit"} {
		if info, err := os.Stat(r.outputs[form]); err != nil || info.Size() == 0 {
			t.Errorf("the output %s is %q: %v", form, r.outputs[form], err)
		}
	}
}

func TestFindingsFailTheLastStepAfterEverythingIsPublished(t *testing.T) {
	p := newPipeline(t, found(2))
	r := p.run("check", nil)
	if r.code != 1 || r.outputs["exit-code"] != "1" {
		t.Errorf("exit code %d, output %q", r.code, r.outputs["exit-code"])
	}
	mustContain(t, "the comment", p.written(), "LEAK", "default/owned-1")
	mustContain(t, "the summary", r.summary, "LEAK", "default/owned-1")
	mustContain(t, "the log", r.log, "::error title=koboshi check::There are findings")
	if len(r.calls) != 1 {
		t.Errorf("the calls are %+v", r.calls)
	}
}

// GitHub closes the alerts that an upload does not contain, so a check without a result must not be
// uploaded.
func TestACheckThatCouldNotBeDoneFailsAndUploadsNothing(t *testing.T) {
	interrupted := clean()
	interrupted.Stopped = "interrupted"
	for name, result := range map[string]any{"without a report": "2", "with a report": interrupted} {
		t.Run(name, func(t *testing.T) {
			p := newPipeline(t, result)
			r := p.run("check", nil)
			if r.code != 2 || r.outputs["exit-code"] != "2" || len(r.calls) > 0 {
				t.Errorf("exit code %d, output %q, calls %+v", r.code, r.outputs["exit-code"], r.calls)
			}
			mustContain(t, "the comment", p.written(), "**koboshi check**")
			mustContain(t, "the summary", r.summary, "**koboshi check**")
		})
	}
}

func TestACheckThatWritesNoReportIsNoSuccess(t *testing.T) {
	if r := newPipeline(t, "0").run("check", nil); r.code != 2 {
		t.Errorf("exit code %d, want 2", r.code)
	}
}

func TestAKilledCheckFailsWithItsExitCode(t *testing.T) {
	r := newPipeline(t, "137").run("check", nil)
	if r.code != 137 {
		t.Errorf("exit code %d, want 137", r.code)
	}
	mustContain(t, "the summary", r.summary, "could not be done (exit code 137)")
}

func TestWithoutKoboshiTheErrorNamesTheStepThatInstallsIt(t *testing.T) {
	p := newPipeline(t, clean())
	p.path = strings.Join(slices.DeleteFunc(filepath.SplitList(p.path), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "koboshi"))
		return err == nil
	}), string(os.PathListSeparator))
	r := p.run("check", nil)
	if r.code == 0 {
		t.Error("the check succeeded")
	}
	mustContain(t, "the log", r.log, "koboshi-dev/koboshi/actions/setup")
}

func TestAForkWithoutRightsGetsTheSummaryAndTheResult(t *testing.T) {
	for code, result := range []*report.Report{clean(), found(1)} {
		p := newPipeline(t, result)
		p.hub.refuse = 403
		p.uses = func(call) (map[string]string, error) {
			return nil, errors.New("Resource not accessible by integration")
		}
		r := p.run("check", nil)
		if r.code != code {
			t.Errorf("exit code %d, want %d; log:\n%s", r.code, code, r.log)
		}
		mustContain(t, "the log", r.log, "::warning title=koboshi check::The comment was not written", "pull-requests: write", "security-events: write")
		mustContain(t, "the summary", r.summary, "**koboshi check**")
		if len(p.hub.comments) != 0 {
			t.Errorf("comments: %+v", p.hub.comments)
		}
	}
}

func TestTheResultDoesNotDependOnGitHub(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:1": "GitHub does not answer",
		newPage(t, "<html>"): "not a list of comments",
		newPage(t, "null"):   "not a list of comments",
	} {
		p := newPipeline(t, found(1))
		p.env[0] = "GITHUB_API_URL=" + address
		r := p.run("check", nil)
		if r.code != 1 {
			t.Errorf("%s: exit code %d, want 1", address, r.code)
		}
		mustContain(t, "the log", r.log, "::warning", want)
	}
}

func TestALaterRunReplacesItsOwnComment(t *testing.T) {
	p := newPipeline(t, found(1))
	for range 120 { // more than one page
		p.hub.add("User", "Looks good.")
	}
	p.hub.add("User", "<!-- koboshi-check: . --> from a person") // anybody can write the marker
	p.run("check", nil)
	p.hub.comments[len(p.hub.comments)-1].Body += "old"
	p.run("check", nil)
	if len(p.hub.comments) != 122 {
		t.Fatalf("%d comments, want one of the check", len(p.hub.comments)-121)
	}
	last := p.hub.comments[121].Body
	if mustContain(t, "the comment", last, "LEAK"); strings.HasSuffix(last, "old") || p.hub.comments[120].User.Type != "User" {
		t.Errorf("the comment was not replaced:\n%s", last)
	}
	mustContain(t, "the comment of a person", p.hub.comments[120].Body, "from a person")
}

func TestEachNameHasItsOwnComment(t *testing.T) {
	p := newPipeline(t, clean())
	for _, dir := range []string{"operators/a", "operators/b"} {
		if err := os.MkdirAll(filepath.Join(p.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		p.run("check", map[string]string{"working-directory": dir})
	}
	p.run("check", map[string]string{"name": "--> <b>upgrade</b>"})
	p.run("check", map[string]string{"working-directory": "operators/a"})
	var heads []string
	for _, c := range p.hub.comments {
		head, _, _ := strings.Cut(c.Body, "\n")
		heads = append(heads, head)
	}
	want := []string{"<!-- koboshi-check: operators/a -->", "<!-- koboshi-check: operators/b -->", "<!-- koboshi-check: _____b_upgrade_/b_ -->"}
	if diff := cmp.Diff(want, heads); diff != "" {
		t.Errorf("the first lines of the comments (-want +got):\n%s", diff)
	}
}

func TestAVeryLargeReportFitsIntoTheComment(t *testing.T) {
	p := newPipeline(t, found(2000))
	if r := p.run("check", nil); r.code != 1 {
		t.Errorf("exit code %d", r.code)
	}
	mustContain(t, "the comment", p.written(), "more findings were cut", "check.html", "of commit fedcba")
}

// Another version of koboshi may have another limit.
func TestAReportOverTheLimitIsCutBetweenLines(t *testing.T) {
	p := newPipeline(t, clean())
	fake := filepath.Join(t.TempDir(), "koboshi")
	script := `#!/bin/bash
for arg; do case "$arg" in
  markdown=*) for i in {1..3000}; do echo "line $i is long: ééééééééééééééééééééé"; done >"${arg#*=}" ;;
  *=/*) echo '{}' >"${arg#*=}" ;;
esac; done`
	if err := os.WriteFile(fake, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	p.path = filepath.Dir(fake) + string(os.PathListSeparator) + p.path
	if r := p.run("check", nil); r.code != 0 {
		t.Errorf("exit code %d:\n%s", r.code, r.log)
	}
	body := p.written()
	mustContain(t, "the comment", body, "The rest of this report was cut", "line 500 is long: ééééééééééééééééééééé\n", "of commit")
	if strings.Contains(body, "line 3000") || strings.Contains(body, "�") {
		t.Error("the comment was not cut, or within a character")
	}
}

func TestInputsBecomeSingleArguments(t *testing.T) {
	p := newPipeline(t, clean())
	p.run("check", map[string]string{
		"budget": "5m", "upgrade-from": "v1; touch injected", "args": "--samples=my samples\n\n$(touch injected)\n--\n./manager\n--a b",
	})
	want := []string{"check", "--budget=5m", "--upgrade-from=v1; touch injected", "--samples=my samples", "$(touch injected)", "--", "./manager", "--a b"}
	if diff := cmp.Diff(want, without(argumentsOf(t, p.arguments))); diff != "" {
		t.Errorf("the arguments of koboshi (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "injected")); err == nil {
		t.Error("an input was run as a command")
	}
}

func TestAShardPublishesNothingAndHasTheSeedOfItsSiblings(t *testing.T) {
	p := newPipeline(t, part(found(1), 1))
	r := p.run("check", map[string]string{"shard": "1/2"})
	if r.code != 1 || len(r.calls)+len(p.hub.requests) > 0 {
		t.Errorf("exit code %d, calls %+v, requests %q", r.code, r.calls, p.hub.requests)
	}
	if got := without(argumentsOf(t, p.arguments)); !slices.Equal(got, []string{"check", "--shard=1/2", "--seed=4711"}) {
		t.Errorf("the arguments are %q", got)
	}
	mustContain(t, "the summary", r.summary, "LEAK")
}

func TestReportsOfShardsAreMergedAndPublished(t *testing.T) {
	p := newPipeline(t, clean())
	for i, r := range []*report.Report{part(clean(), 1), part(found(1), 2)} {
		dir := filepath.Join(p.dir, "parts", []string{"a", "b b"}[i])
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		saved(t, r, filepath.Join(dir, "check.json"))
	}
	r := p.run("check", map[string]string{"reports": "parts/*/check.json\n"})
	if r.code != 1 || len(r.calls) != 1 {
		t.Errorf("exit code %d, calls %+v; log:\n%s", r.code, r.calls, r.log)
	}
	if got := without(argumentsOf(t, p.arguments)); !slices.Equal(got, []string{"check", "report", "parts/a/check.json", "parts/b b/check.json"}) {
		t.Errorf("the arguments are %q", got)
	}
	merged, err := report.ReadFile(r.outputs["json"])
	if err != nil || len(merged.Findings) != 1 || merged.Runs != 14 {
		t.Errorf("merged: %+v (%v)", merged, err)
	}
	mustContain(t, "the comment", p.written(), "LEAK")
}

func TestAPatternWithoutReportsFails(t *testing.T) {
	if r := newPipeline(t, clean()).run("check", map[string]string{"reports": "parts/*.json"}); r.code != 2 {
		t.Errorf("exit code %d, want 2", r.code)
	}
}

func TestWhatIsTurnedOffIsNotDone(t *testing.T) {
	p := newPipeline(t, clean())
	if r := p.run("check", map[string]string{"sarif": "false", "comment": "false"}); len(r.calls)+len(p.hub.requests) > 0 {
		t.Errorf("calls %+v, requests %q", r.calls, p.hub.requests)
	}
	p.github["event.pull_request.number"] = "" // a push
	if p.run("check", nil); len(p.hub.requests) > 0 {
		t.Errorf("without a pull request, the requests are %q", p.hub.requests)
	}
}

// The runner carries out lines that begin with ::, unless commands are stopped.
func TestTheOutputOfTheCheckContainsNoCommandsOfTheRunner(t *testing.T) {
	log := newPipeline(t, found(1)).run("check", nil).log
	_, after, stopped := strings.Cut(log, "::stop-commands::")
	token, rest, _ := strings.Cut(after, "\n")
	output, _, resumed := strings.Cut(rest, "::"+token+"::\n")
	if !stopped || !resumed || len(token) < 20 {
		t.Fatalf("commands are not stopped with a secret token:\n%s", log)
	}
	mustContain(t, "the part without commands", output, "LEAK")
}
