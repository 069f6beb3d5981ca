package actions

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/koboshi-dev/koboshi/internal/check/report"
)

// gitlabJob is the part of a job that our template uses.
type gitlabJob struct {
	Extends, Image, Stage, When string
	Variables                   map[string]string
	BeforeScript                []string `yaml:"before_script"`
	Script                      []string
	Cache                       struct {
		Key   string
		Paths []string
	}
	Artifacts struct {
		When    string
		Paths   []string
		Reports map[string]string
	}
}

const template = "gitlab/koboshi.gitlab-ci.yml"

func readTemplate(t *testing.T) map[string]gitlabJob {
	t.Helper()
	data, err := os.ReadFile(template)
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]gitlabJob{}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&jobs); err != nil {
		t.Fatalf("%s: %v", template, err)
	}
	return jobs
}

// pipelineJob is a job that GitLab's runner runs.
type pipelineJob struct {
	t         *testing.T
	dir       string // the checkout of the project, which jobs share through artifacts
	bin       string
	arguments string
}

func newPipelineJob(t *testing.T) *pipelineJob {
	t.Helper()
	j := &pipelineJob{t: t, dir: t.TempDir()}
	j.arguments = filepath.Join(t.TempDir(), "arguments")
	j.bin = filepath.Join(j.dir, ".koboshi-bin") // as the cache restores it
	if err := os.Mkdir(j.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	j.program(filepath.Join(installed(t), "koboshi"))
	return j
}

// program sets the program that the cache restores.
func (j *pipelineJob) program(path string) {
	j.t.Helper()
	script := "#!/bin/sh\n[ \"$1\" != version ] || exit 0\nexec '" + path + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(j.bin, "koboshi"), []byte(script), 0o755); err != nil {
		j.t.Fatal(err)
	}
}

// run runs a job as GitLab does: one shell runs all lines, and stops at the first error.
func (j *pipelineJob) run(name string, variables map[string]string) (code int, log string) {
	j.t.Helper()
	jobs := readTemplate(j.t)
	job, base := jobs[name], jobs[jobs[name].Extends]
	if len(job.Script) == 0 || len(base.BeforeScript) == 0 {
		j.t.Fatalf("the job %s has no script", name)
	}
	cmd := exec.Command("bash", "-c", "set -eo pipefail\n"+strings.Join(slices.Concat(base.BeforeScript, job.Script), "\n"))
	cmd.Dir = j.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + j.dir, "CI_PROJECT_DIR=" + j.dir, "CI_PIPELINE_ID=99", argumentsVariable + "=" + j.arguments}
	for _, group := range []map[string]string{base.Variables, job.Variables, variables} {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			cmd.Env = append(cmd.Env, name+"="+group[name])
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() <= 0 {
		j.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// check runs the job that checks, with a result.
func (j *pipelineJob) check(result *report.Report, variables map[string]string) (code int, log string) {
	j.t.Helper()
	all := maps.Clone(variables)
	if all == nil {
		all = map[string]string{}
	}
	all[resultVariable] = saved(j.t, result, filepath.Join(j.t.TempDir(), "result.json"))
	return j.run("koboshi-check", all)
}

// shown fails the test unless GitLab can read the reports that a job declares.
func (j *pipelineJob) shown(name string, findings int) {
	j.t.Helper()
	reports := readTemplate(j.t)[name].Artifacts.Reports
	read := func(kind string) []byte {
		data, err := os.ReadFile(filepath.Join(j.dir, reports[kind]))
		if err != nil {
			j.t.Fatal(err)
		}
		return data
	}
	var issues []struct {
		Fingerprint string
		Location    struct{ Path string }
	}
	if err := json.Unmarshal(read("codequality"), &issues); err != nil || len(issues) != findings {
		j.t.Errorf("code quality has %d issues, want %d (%v)", len(issues), findings, err)
	}
	var suites struct {
		Failures int `xml:"failures,attr"`
	}
	if err := xml.Unmarshal(read("junit"), &suites); err != nil || suites.Failures != findings {
		j.t.Errorf("JUnit has %d failures, want %d (%v)", suites.Failures, findings, err)
	}
}

func TestGitLabShowsTheFindings(t *testing.T) {
	for code, result := range []*report.Report{clean(), found(1)} {
		j := newPipelineJob(t)
		if got, log := j.check(result, nil); got != code {
			t.Errorf("exit code %d, want %d:\n%s", got, code, log)
		}
		j.shown("koboshi-check", code)
	}
}

func TestGitLabPassesItsVariablesAsArguments(t *testing.T) {
	j := newPipelineJob(t)
	if err := os.Mkdir(filepath.Join(j.dir, "operator"), 0o755); err != nil {
		t.Fatal(err)
	}
	if code, log := j.check(clean(), map[string]string{"KOBOSHI_DIR": "operator", "KOBOSHI_BUDGET": "", "KOBOSHI_ARGS": "--strict --workers=2"}); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, log)
	}
	if diff := cmp.Diff([]string{"check", "--strict", "--workers=2"}, without(argumentsOf(t, j.arguments))); diff != "" {
		t.Errorf("the arguments (-want +got):\n%s", diff)
	}
}

func TestGitLabMergesTheReportsOfParallelJobs(t *testing.T) {
	j := newPipelineJob(t)
	for i, result := range []*report.Report{part(clean(), 1), part(found(1), 2)} {
		number := string(rune('1' + i))
		code, log := j.check(result, map[string]string{"CI_NODE_INDEX": number, "CI_NODE_TOTAL": "2"})
		if code != i {
			t.Errorf("exit code %d of shard %s:\n%s", code, number, log)
		}
		if got := without(argumentsOf(t, j.arguments)); !slices.Equal(got, []string{"check", "--budget=5m", "--shard=" + number + "/2", "--seed=99"}) {
			t.Errorf("the arguments are %q", got)
		}
	}
	if code, log := j.run(".koboshi-report", nil); code != 1 {
		t.Errorf("exit code %d:\n%s", code, log)
	}
	j.shown(".koboshi-report", 1)
}

func TestGitLabInstallsOnlyAReleaseWithTheRightChecksum(t *testing.T) {
	archive := packed(t, program)
	name := strings.Replace(archiveName, "darwin", "linux", 1)
	for sums, works := range map[string]bool{string(checksums(map[string][]byte{name: archive})): true, string(checksums(map[string][]byte{name: nil})): false} {
		j := newPipelineJob(t)
		if err := os.RemoveAll(j.bin); err != nil {
			t.Fatal(err)
		}
		address := release(t, map[string][]byte{name: archive, "checksums.txt": []byte(sums)})
		code, log := j.run("koboshi-check", map[string]string{"KOBOSHI_VERSION": "v1.2.0", "KOBOSHI_RELEASES": address})
		if installed := strings.Contains(log, "koboshi v1.2.0, called with check"); installed != works || (code == 0) != works {
			t.Errorf("installed: %v, exit code %d, want %v:\n%s", installed, code, works, log)
		}
	}
}
