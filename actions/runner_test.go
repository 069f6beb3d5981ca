package actions

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// action is the part of an action.yml that our actions use.
type action struct {
	Name, Description string
	Inputs            map[string]struct{ Description, Default string }
	Outputs           map[string]struct{ Description, Value string }
	Runs              struct {
		Using string
		Steps []step
	}
}

// step is either a script, in Run, or a call of another action, in Uses.
type step struct {
	ID, If, Shell, Run, Uses string
	WorkingDirectory         string `yaml:"working-directory"`
	ContinueOnError          bool   `yaml:"continue-on-error"`
	Env, With                map[string]string
}

func readAction(t *testing.T, name string) action {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(name, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var a action
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&a); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return a
}

// A runner runs the steps of a composite action, as GitHub's runner does.
type runner struct {
	t *testing.T
	// github holds the context github, without the prefix of its names.
	github map[string]string
	env    []string
	dir    string // the workspace
	temp   string
	// uses answers calls of other actions. It returns the outputs of the action.
	uses func(call) (map[string]string, error)
	// path is the PATH of the steps, to which a step may add folders.
	path string
}

// call is a call of another action.
type call struct {
	uses string
	with map[string]string
}

// result is the outcome of an action.
type result struct {
	// code is the exit code of the step that failed, or 0.
	code    int
	log     string
	summary string
	outputs map[string]string
	calls   []call
}

// done is the result of a step, which later steps can read.
type done struct {
	outputs map[string]string
	outcome string // success, failure or skipped
}

func newRunner(t *testing.T) *runner {
	t.Helper()
	return &runner{
		t: t, dir: t.TempDir(), temp: t.TempDir(), path: os.Getenv("PATH"),
		github: map[string]string{
			"sha": "0123456789abcdef", "token": "", "event.pull_request.number": "", "event.pull_request.head.sha": "",
		},
		uses: func(call) (map[string]string, error) { return nil, nil },
	}
}

func (r *runner) run(name string, inputs map[string]string) result {
	r.t.Helper()
	a := readAction(r.t, name)
	given := map[string]string{}
	steps := map[string]done{}
	lookup := scope(func(name string) (string, error) { return r.lookup(name, given, steps) })
	for input, declared := range a.Inputs {
		given[input] = r.interpolated(lookup, declared.Default)
	}
	for input, text := range inputs {
		if _, ok := given[input]; !ok {
			r.t.Fatalf("%s has no input %s", name, input)
		}
		given[input] = text
	}
	job := &job{runner: r, action: name, scope: lookup, steps: steps}
	for _, s := range a.Runs.Steps {
		job.step(s)
	}
	job.result.outputs = map[string]string{}
	for output, declared := range a.Outputs {
		job.result.outputs[output] = r.interpolated(lookup, declared.Value)
	}
	return job.result
}

// lookup resolves a name. Steps that come later have no outputs yet, so naming one is a mistake.
func (r *runner) lookup(name string, inputs map[string]string, steps map[string]done) (string, error) {
	group, rest, _ := strings.Cut(name, ".")
	switch group {
	case "inputs":
		if text, ok := inputs[rest]; ok {
			return text, nil
		}
	case "github":
		if text, ok := r.github[rest]; ok {
			return text, nil
		}
	case "steps":
		id, field, _ := strings.Cut(rest, ".")
		s, ok := steps[id]
		switch output, isOutput := strings.CutPrefix(field, "outputs."); {
		case ok && isOutput:
			return s.outputs[output], nil
		case ok && field == "outcome":
			return s.outcome, nil
		}
	}
	return "", fmt.Errorf("%s has no value here", name)
}

func (r *runner) interpolated(s scope, text string) string {
	r.t.Helper()
	replaced, err := s.interpolate(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return replaced
}

// job is one run of an action.
type job struct {
	*runner
	action string
	scope  scope
	steps  map[string]done
	result result
}

func (j *job) step(s step) {
	j.t.Helper()
	d := done{outcome: "skipped"}
	// Without a function such as always(), a step runs only if no step has failed.
	if j.result.code == 0 && j.wanted(s.If) {
		var code int
		if s.Uses != "" {
			d, code = j.call(s)
		} else {
			d, code = j.script(s)
		}
		if code != 0 && !s.ContinueOnError {
			j.result.code = code
		}
	}
	if s.ID != "" {
		j.steps[s.ID] = d
	}
}

func (j *job) wanted(condition string) bool {
	j.t.Helper()
	if condition == "" {
		return true
	}
	v, err := j.scope.evaluate(condition)
	if err != nil {
		j.t.Fatal(err)
	}
	return v.truth()
}

func (j *job) call(s step) (done, int) {
	j.t.Helper()
	c := call{uses: s.Uses, with: map[string]string{}}
	for name, text := range s.With {
		c.with[name] = j.interpolated(j.scope, text)
	}
	j.result.calls = append(j.result.calls, c)
	outputs, err := j.uses(c)
	if err != nil {
		j.result.log += err.Error() + "\n"
		return done{outputs, "failure"}, 1
	}
	return done{outputs, "success"}, 0
}

// script runs a script with the same flags as the runner for `shell: bash`.
func (j *job) script(s step) (done, int) {
	j.t.Helper()
	if s.Shell != "bash" {
		j.t.Fatalf("the shell is %q", s.Shell)
	}
	files := j.t.TempDir()
	script := filepath.Join(files, "script.sh")
	j.write(script, s.Run)
	cmd := exec.Command("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script)
	cmd.Dir = filepath.Join(j.dir, j.interpolated(j.scope, s.WorkingDirectory))
	cmd.Env = j.environment(files)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		cmd.Env = append(cmd.Env, name+"="+j.interpolated(j.scope, s.Env[name]))
	}
	out, err := cmd.CombinedOutput()
	j.result.log += string(out)
	j.result.summary += j.read(filepath.Join(files, "summary"))
	for line := range strings.Lines(j.read(filepath.Join(files, "path"))) {
		j.path = strings.TrimSuffix(line, "\n") + string(os.PathListSeparator) + j.path
	}
	d := done{j.assignments(filepath.Join(files, "output")), "success"}
	code := cmd.ProcessState.ExitCode()
	if code != 0 {
		d.outcome = "failure"
	} else if err != nil {
		j.t.Fatal(err)
	}
	return d, code
}

// environment returns the variables that the runner sets, with files in a folder of the step.
func (j *job) environment(files string) []string {
	absolute, err := filepath.Abs(j.action)
	if err != nil {
		j.t.Fatal(err)
	}
	env := []string{
		"PATH=" + j.path, "HOME=" + j.temp, "RUNNER_TEMP=" + j.temp, "TMPDIR=" + j.temp, "GITHUB_ACTION_PATH=" + absolute,
		"GITHUB_REPOSITORY=team/operator", "GITHUB_RUN_ID=4711", "GITHUB_SERVER_URL=https://github.example",
	}
	for _, name := range []string{"OUTPUT", "ENV", "STEP_SUMMARY", "PATH"} {
		file := filepath.Join(files, map[string]string{"OUTPUT": "output", "ENV": "env", "STEP_SUMMARY": "summary", "PATH": "path"}[name])
		j.write(file, "")
		env = append(env, "GITHUB_"+name+"="+file)
	}
	return append(env, j.env...)
}

// assignments reads lines in the form name=value.
func (j *job) assignments(file string) map[string]string {
	j.t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(j.read(file)) {
		name, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok {
			j.t.Fatalf("the runner cannot read the output %q", line)
		}
		all[name] = text
	}
	return all
}

func (r *runner) write(file, text string) {
	r.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *runner) read(file string) string {
	r.t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}
