package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

func TestWrongUseIsAnsweredInOneLineWithTheNextAction(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Dir(file)
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ args, says string }{
		{"upp", `unknown command "upp"; did you mean "up"?`},
		{"versoon", `unknown command "versoon"; did you mean "version"?`},
		{"frobnicate", `unknown command "frobnicate"; see koboshi --help`},
		{"--frobnicate", "unknown flag: --frobnicate; see koboshi --help"},
		{"up --frobnicate", "unknown flag: --frobnicate; see koboshi up --help"},
		{"up there", `koboshi up takes no arguments, but got "there"; see koboshi up --help`},
		{"up --nodes=many", `"--nodes" flag: strconv.ParseInt: parsing "many": invalid syntax; see koboshi up --help`},
		{"up --nodes=-1", "--nodes is -1; use 0 to 32768"},
		{"up --nodes=32769", "--nodes is 32769; use 0 to 32768"},
		{"up --port=-1", "--port is -1; use 1 to 65535, or 0 for a free one"},
		{"up --port=65536", "--port is 65536; use 1 to 65535, or 0 for a free one"},
		{"up --profile=ful", `unknown profile "ful"; did you mean "full"?`},
		{"up --profile=", `unknown profile ""; choose one of: api, gc, workloads, full`},
		{"up --controllers=-deploymnt", `unknown controller "deploymnt"; did you mean "deployment-controller"?`},
		{"up --ephemeral --data-dir=x", "--ephemeral keeps the state in memory, but --data-dir keeps it in a folder; use only one of them"},
		{"up --ephemeral --etcd-servers=http://127.0.0.1:1", "--etcd-servers keeps it in your etcd; use only one of them"},
		{"up --data-dir=", "--data-dir is empty; name a folder, or use --ephemeral"},
		{"up --data-dir=" + file, file + " is not a directory; choose another --data-dir"},
		{"up --data-dir=" + foreign, "so Koboshi did not create it; choose an empty or new --data-dir"},
		{"version there", `koboshi version takes no arguments, but got "there"; see koboshi version --help`},
		{"init --plugins go/v3", `unknown plugin "go/v3"; omit --plugins, because koboshi init always uses go/v4`},
		{"init --project-version 2", `unknown project version "2"; omit --project-version, because koboshi init always writes version 3`},
		{"edit", "use either --multigroup or --update; see koboshi edit --help"},
		{"edit --multigroup --update", "use either --multigroup or --update; see koboshi edit --help"},
		{"edit --multigroup --adopt", "--adopt and --skip-conflicts need --update; omit them"},
		{"edit --update", "there is no PROJECT in " + cwd + "; run koboshi init first, or change to the folder of a project"},
		{"version -o yaml", `unknown output format "yaml"; use -o json, or omit -o`},
	} {
		code, stdout, stderr := run(t, strings.Fields(test.args)...)
		line, ok := strings.CutSuffix(stderr, "\n")
		if code != exitUsage || stdout != "" || !ok || strings.Contains(line, "\n") {
			t.Errorf("koboshi %s: exit code %d, want %d, and one line on standard error:\n%s%s", test.args, code, exitUsage, stdout, stderr)
		}
		if !strings.HasPrefix(line, "koboshi: ") || !strings.HasSuffix(line, test.says) {
			t.Errorf("koboshi %s:\ngot  %s\nwant koboshi: … %s", test.args, line, test.says)
		}
	}
	if entries, err := os.ReadDir(foreign); err != nil || len(entries) != 1 {
		t.Errorf("a refused folder holds %v (%v)", entries, err)
	}
}

func TestVersionIsForPeopleAndForScripts(t *testing.T) {
	code, out, stderr := run(t, "version", "-o", "json")
	if code != exitOK || stderr != "" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if modules, ok := got["modules"].(map[string]any); !ok || len(modules) == 0 || got["koboshi"] == "" {
		t.Errorf("%s", out)
	}
	for key, want := range map[string]string{
		"kubernetes": "v" + kubeversion.Version,
		"go":         runtime.Version(),
		"platform":   runtime.GOOS + "/" + runtime.GOARCH,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %s", key, got[key], want)
		}
	}
	code, out, _ = run(t, "version")
	if wantLine := fmt.Sprintf("koboshi %v, Kubernetes v%s", got["koboshi"], kubeversion.Version); code != exitOK || !strings.HasPrefix(out, wantLine) || strings.Count(out, "\n") != 1 {
		t.Errorf("exit code %d: %q, want one line that begins %q", code, out, wantLine)
	}
}

func TestHelpNamesEveryVerbAndProfile(t *testing.T) {
	for args, parts := range map[string][]string{
		"":          {"up ", "kubectl ", "version "},
		"--help":    {"up ", "kubectl ", "version "},
		"up --help": {"api ", "gc ", "workloads ", "full ", "--data-dir"},
	} {
		code, out, stderr := run(t, strings.Fields(args)...)
		if code != exitOK || stderr != "" {
			t.Errorf("koboshi %s: exit code %d: %s", args, code, stderr)
		}
		for _, part := range parts {
			if !strings.Contains(out, "  "+strings.TrimSuffix(part, " ")) {
				t.Errorf("koboshi %s does not mention %s", args, part)
			}
		}
	}
}

func TestNodesNeedAScheduler(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want int
	}{
		{nil, 1},
		{[]string{"--nodes=3"}, 3},
		{[]string{"--profile=workloads"}, 1},
		{[]string{"--profile=api"}, 0},
		{[]string{"--profile=api", "--controllers=scheduler"}, 1},
		{[]string{"--profile=gc"}, 0},
		{[]string{"--profile=gc", "--nodes=2"}, 2},
		{[]string{"--controllers=-kube-scheduler"}, 0},
	} {
		o, err := parseUp(test.args...)
		if err != nil || o.Nodes != test.want {
			t.Errorf("up %q: %d nodes (%v), want %d", test.args, o.Nodes, err, test.want)
		}
	}
}

func TestFlagsOfTheAPIServerMayLeaveOutTheDashes(t *testing.T) {
	t.Parallel()
	o, err := parseUp("--kube-apiserver-arg=feature-gates=A=true,B=false", "--kube-apiserver-arg=--v=4", "--kube-apiserver-arg", "-profiling=false")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"--feature-gates=A=true,B=false", "--v=4", "--profiling=false"}, o.APIServerFlags); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEphemeralHasNoFolder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{{nil, defaultDataDir}, {[]string{"--data-dir=x"}, "x"}, {[]string{"--ephemeral"}, ""}} {
		o, err := parseUp(test.args...)
		if err != nil || o.DataDir != test.want {
			t.Errorf("up %q: data directory %q (%v), want %q", test.args, o.DataDir, err, test.want)
		}
	}
}

// run executes a command line and returns its exit code and output. It cannot run
// in parallel tests, because every cobra command adds pflag's global flags to its own.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stderr")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var out bytes.Buffer
	code = Run(t.Context(), args, Stdio{In: strings.NewReader(""), Out: &out, Err: file})
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return code, out.String(), string(written)
}
