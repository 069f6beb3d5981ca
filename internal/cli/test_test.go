package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/envtest"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

// These variables would affect the suite or this test.
var suiteVariables = []string{"KUBEBUILDER_ASSETS", "TEST_ASSET_ETCD", "TEST_ASSET_KUBE_APISERVER", "TEST_ASSET_KUBECTL", "USE_EXISTING_CLUSTER", controllersVar}

// speakingTest is the test file of a module that runs under koboshi test. Its test prints
// its environment as JSON, which shows the effect of koboshi test.
const speakingTest = `package m

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
)

func TestSpeak(t *testing.T) {
	said := map[string]string{}
	for _, name := range []string{"KUBEBUILDER_ASSETS", "TEST_ASSET_ETCD", "TEST_ASSET_KUBE_APISERVER", "TEST_ASSET_KUBECTL", "KOBOSHI_CONTROLLERS", "OTHER"} {
		if value, ok := os.LookupEnv(name); ok {
			said[name] = value
		}
	}
	said["argument"] = flag.Arg(0)
	line, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("\nsaid:" + string(line) + "\n")
}

func TestFail(t *testing.T) { t.Skip() }
`

func TestSuitesFindThisProgram(t *testing.T) {
	cacheFolder(t)
	_, out, _ := run(t, "envtest", "path")
	program, err := filepath.EvalSymlinks(filepath.Join(strings.TrimSpace(out), "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	const folder = "FOLDER" // stands for a folder with links to this program
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
		want map[string]string
		says string
	}{
		"nothing set": {nil, nil, map[string]string{"KUBEBUILDER_ASSETS": folder}, ""},
		"stock binaries set": {
			map[string]string{"KUBEBUILDER_ASSETS": "stock", "TEST_ASSET_ETCD": "stock/etcd", "TEST_ASSET_KUBE_APISERVER": "stock/a", "OTHER": "kept"}, nil,
			map[string]string{"KUBEBUILDER_ASSETS": folder, "TEST_ASSET_ETCD": folder + "/etcd", "TEST_ASSET_KUBE_APISERVER": folder + "/kube-apiserver", "OTHER": "kept"}, "",
		},
		"controllers by flag": {
			map[string]string{controllersVar: "nothing known"}, []string{"--controllers=gc,namespace"},
			map[string]string{"KUBEBUILDER_ASSETS": folder, controllersVar: "gc,namespace"}, "",
		},
		"controllers by several flags": {
			nil, []string{"--controllers", "gc", "-count=1", "--controllers=deployment", "--", "x"},
			map[string]string{"KUBEBUILDER_ASSETS": folder, controllersVar: "gc,deployment", "argument": "x"},
			"koboshi: deployment also starts replicaset, kube-scheduler, node-lifecycle, a simulated node\n",
		},
		"controllers by variable": {
			map[string]string{controllersVar: "cronjob"}, nil,
			map[string]string{"KUBEBUILDER_ASSETS": folder, controllersVar: "cronjob"},
			"koboshi: cronjob also starts job, kube-scheduler, node-lifecycle, a simulated node\n",
		},
		"controllers unset by an empty flag": {
			map[string]string{controllersVar: "cronjob"}, []string{"--controllers="},
			map[string]string{"KUBEBUILDER_ASSETS": folder, controllersVar: ""}, "",
		},
		"an existing cluster": {
			map[string]string{"USE_EXISTING_CLUSTER": "True"}, nil, map[string]string{"KUBEBUILDER_ASSETS": folder},
			"koboshi: USE_EXISTING_CLUSTER is true, so the suite uses the cluster in your kubeconfig; unset the variable to use koboshi\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			speakingModule(t, speakingTest)
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			code, out, stderr := run(t, append([]string{"test", "-run", "TestSpeak", "-v"}, test.args...)...)
			if code != exitOK || stderr != test.says {
				t.Errorf("exit code %d, %q on standard error, want %q\n%s", code, stderr, test.says, out)
			}
			if _, ok := test.want["argument"]; !ok {
				test.want["argument"] = ""
			}
			got := said(t, out)
			assets := got["KUBEBUILDER_ASSETS"]
			for name, value := range got {
				got[name] = strings.Replace(value, assets, folder, 1)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("what the suite sees (-want +got):\n%s", diff)
			}
			for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
				if leads, err := filepath.EvalSymlinks(filepath.Join(assets, name)); err != nil || leads != program {
					t.Errorf("%s leads to %s (%v), want %s", name, leads, err, program)
				}
			}
		})
	}
}

func TestGoDoesNotAnswerFromItsCacheWhenOtherControllersAreNamed(t *testing.T) {
	cacheFolder(t)
	speakingModule(t, speakingTest)
	for _, test := range []struct {
		args   []string
		cached bool
	}{
		{nil, false}, {nil, true}, {[]string{"--controllers=gc"}, false}, {[]string{"--controllers=gc"}, true}, {[]string{"--controllers=namespace"}, false},
	} {
		_, out, stderr := run(t, append([]string{"test", "-run", "TestSpeak"}, test.args...)...)
		if got := strings.Contains(out, "(cached)"); got != test.cached {
			t.Errorf("%v: from the cache: %t, want %t\n%s%s", test.args, got, test.cached, out, stderr)
		}
	}
}

func TestTheExitCodeIsGoTests(t *testing.T) {
	cacheFolder(t)
	for source, want := range map[string]int{
		speakingTest: 0,
		strings.Replace(speakingTest, "t.Skip()", "t.Fail()", 1):                              1,
		strings.Replace(speakingTest, "t.Skip()", "does not compile", 1):                      1,
		strings.Replace(speakingTest, "t.Skip()", "os.Stdout.Close(); panic(\"crashed\")", 1): 1,
	} {
		speakingModule(t, source)
		if code, out, stderr := run(t, "test"); code != want || strings.Contains(stderr, "koboshi:") {
			t.Errorf("exit code %d, want %d, and no message from koboshi\n%s%s", code, want, out, stderr)
		}
	}
	if code, _, stderr := run(t, "test", "-timeout", "soon"); code != 2 || strings.Contains(stderr, "koboshi:") {
		t.Errorf("go test rejects -timeout soon with exit code 2, and koboshi test ended with %d\n%s", code, stderr)
	}
}

func TestAWrongControllerIsRefusedBeforeAnyTest(t *testing.T) {
	for _, test := range []struct {
		args, variable, says string
	}{
		{"-- true", "deploymnt", `koboshi: KOBOSHI_CONTROLLERS: unknown controller "deploymnt"; did you mean "deployment-controller"?`},
		{"--controllers=gc,deploymnt", "", `koboshi: unknown controller "deploymnt"; did you mean "deployment-controller"?`},
		{"--controllers=workload", "", `koboshi: unknown controller "workload"; did you mean "workloads"?`},
		{"--controllers certificatesigningrequest -v ./...", "gc", `koboshi: unknown controller "certificatesigningrequest"; ` +
			`did you mean "certificatesigningrequest-cleaner-controller" or "certificatesigningrequest-signing-controller"?`},
		{"--controllers=-gc", "", `koboshi: controller "-gc" cannot be removed, because only the named controllers run; omit it`},
		{"", "deploymnt", `koboshi: KOBOSHI_CONTROLLERS: unknown controller "deploymnt"; did you mean "deployment-controller"?`},
		{"--controllers", "", "koboshi: flag needs an argument: --controllers; see koboshi test --help"},
		{"--profile gc ./...", "", "koboshi: --profile applies only to a command after --; for go test, name controllers with --controllers, such as --controllers=workloads"},
		{"--profile gcc -- true", "", `koboshi: unknown profile "gcc"; did you mean "gc"?`},
		{"--controllers=deploymnt -- true", "", `koboshi: unknown controller "deploymnt"; did you mean "deployment-controller"?`},
		{"--kubernetes=1.2 ./...", "", `koboshi: --kubernetes: version "1.2" cannot be emulated; choose one of: ` + strings.Join(kubeversion.Minors(), ", ")},
		{"-- ./... -run X", "", `koboshi: "./..." after -- is not a command; to pass it to go test, omit --; see koboshi test --help`},
		{"--controllers=gc --", "", "koboshi: there is no command after --; write one, or omit -- to run go test; see koboshi test --help"},
	} {
		cacheFolder(t)
		speakingModule(t, speakingTest)
		t.Setenv(controllersVar, test.variable)
		code, out, stderr := run(t, append([]string{"test"}, strings.Fields(test.args)...)...)
		if code != exitUsage || out != "" || stderr != test.says+"\n" {
			t.Errorf("test %s: exit code %d, want %d\ngot  %swant %s\n%s", test.args, code, exitUsage, stderr, test.says, out)
		}
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(cache, "koboshi")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("test %s: the folder exists (%v), so go test was about to run", test.args, err)
		}
	}
}

func TestAVariableNamesTheVersionUnlessTheFlagDoes(t *testing.T) {
	minors := kubeversion.Minors()
	for _, test := range []struct {
		flag     []string
		variable string
		want     string
		wrong    string
	}{
		{nil, "", "", ""},
		{nil, minors[0], minors[0], ""},
		{[]string{minors[1]}, minors[0], minors[1], ""},
		{[]string{minors[1]}, "1.2", minors[1], ""},
		{nil, "1.2", "", "KOBOSHI_KUBERNETES: version"},
		{[]string{"1.2"}, minors[0], "", "--kubernetes: version"},
	} {
		t.Setenv(envtest.KubernetesVariable, test.variable)
		notes, err := os.Create(filepath.Join(t.TempDir(), "notes"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := emulatedBySuite(test.flag, Stdio{Err: notes})
		if got != test.want || (err != nil) != (test.wrong != "") || err != nil && !strings.HasPrefix(err.Error(), test.wrong) {
			t.Errorf("flag %q, variable %q: %q, %v", test.flag, test.variable, got, err)
		}
		if data, err := os.ReadFile(notes.Name()); err != nil || strings.Contains(string(data), "emulates "+test.want) != (test.want != "") {
			t.Errorf("flag %q, variable %q: the note is %q, %v", test.flag, test.variable, data, err)
		}
		_ = notes.Close()
	}
}

func TestTheFlagsOfACommandSelectItsProfile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		own       map[string][]string
		name      string
		has, lack string
		forOthers bool
	}{
		{nil, "workloads", "persistentvolume-binder-controller", "ttl-after-finished-controller", false},
		{map[string][]string{"profile": {"full", "gc"}}, "gc", "garbage-collector-controller", "kube-scheduler", true},
		{map[string][]string{"profile": {"api"}}, "api", "", "garbage-collector-controller", true},
		{map[string][]string{"controllers": {"-job", "ttl-after-finished"}}, "workloads", "ttl-after-finished-controller", "job-controller", true},
		{map[string][]string{"profile": {"api"}, "controllers": {"gc,job", ""}}, "api", "job-controller", "kube-scheduler", true},
	} {
		profile, names, err := selection(test.own)
		if err != nil || profile.Name != test.name {
			t.Errorf("%v: %s (%v), want %s", test.own, profile.Name, err, test.name)
		}
		if test.has != "" && !profile.Has(test.has) || profile.Has(test.lack) {
			t.Errorf("%v: %v; want %s and not %s", test.own, profile.Controllers, test.has, test.lack)
		}
		if (names != nil) != test.forOthers || test.forOthers && !slices.Equal(names, profile.Controllers) {
			t.Errorf("%v: other planes get %v", test.own, names)
		}
	}
}

func TestACommandFindsEnvtestsProgramsAndKubectlLast(t *testing.T) {
	cacheFolder(t)
	given := []string{"PATH=/bin", "USE_EXISTING_CLUSTER=true", "KUBEBUILDER_ASSETS=stock", controllersVar + "=gc"}
	environ, folder, err := commandTest{}.environment(given)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"PATH": "/bin:" + folder, "USE_EXISTING_CLUSTER": "true", "KUBEBUILDER_ASSETS": folder, controllersVar: "gc",
		"TEST_ASSET_ETCD": folder + "/etcd", "TEST_ASSET_KUBE_APISERVER": folder + "/kube-apiserver", "TEST_ASSET_KUBECTL": folder + "/kubectl",
	} {
		if got := value(environ, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if got, err := lookPath("kubectl", folder); err != nil || got != filepath.Join(folder, "kubectl") {
		t.Errorf("kubectl is %q (%v)", got, err)
	}
	minor := kubeversion.Minors()[0]
	environ, other, err := commandTest{controllers: []string{}, minor: minor}.environment(given)
	if err != nil || other == folder || value(environ, controllersVar) != "" || value(environ, "KOBOSHI_KUBERNETES") != minor {
		t.Errorf("with flags: folder %s, was %s (%v): %q", other, folder, err, environ)
	}
}

func TestThePlaneOfACommandThatFailsEndsTheCommand(t *testing.T) {
	failed := make(chan struct{})
	close(failed)
	shell := exec.CommandContext(t.Context(), "sh", "-c", `trap 'exit 3' TERM; for i in $(seq 6000); do sleep 0.01; done`)
	var got exitStatus
	// The signal may arrive before the shell has set its trap.
	if err := followGroup(shell, failed, false); !errors.As(err, &got) || got != 3 && got != 143 {
		t.Errorf("%v, want the command to end because of SIGTERM", err)
	}
}

func TestWithoutGoOneLineSaysWhatToInstall(t *testing.T) {
	cacheFolder(t)
	speakingModule(t, speakingTest)
	t.Setenv("PATH", t.TempDir())
	code, out, stderr := run(t, "test")
	if want := "koboshi: koboshi test runs go test, but there is no go command on the PATH; install Go from https://go.dev/dl\n"; code != exitError || out != "" || stderr != want {
		t.Errorf("exit code %d: %s%s, want %s", code, out, stderr, want)
	}
}

func TestHelpOfTheDropInFitsATerminal(t *testing.T) {
	for _, args := range []string{"test -h", "test -v ./... --help", "help test", "envtest", "envtest --help", "envtest path --help", "envtest install --help"} {
		code, out, stderr := run(t, strings.Fields(args)...)
		if code != exitOK || stderr != "" || !strings.Contains(out, "Usage:") {
			t.Errorf("koboshi %s: exit code %d: %s%s", args, code, out, stderr)
		}
		for line := range strings.Lines(out) {
			if len(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("koboshi %s: more than 80 columns: %s", args, line)
			}
		}
	}
}

func TestSignalsAreForGoTestToObey(t *testing.T) {
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) { // it is ignored under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	for _, s := range signals {
		// The shell handles each signal itself, as go test handles Ctrl-C.
		shell := exec.CommandContext(t.Context(), "sh", "-c", `trap 'echo obeyed; exit 7' INT TERM HUP QUIT; echo ready; for i in $(seq 6000); do sleep 0.01; done`)
		heard := &whenReady{tell: func() {
			if err := syscall.Kill(os.Getpid(), s); err != nil {
				t.Error(err)
			}
		}}
		shell.Stdout = heard
		err := follow(shell)
		var got exitStatus
		if !errors.As(err, &got) || got != 7 || !strings.HasSuffix(heard.written.String(), "obeyed\n") {
			t.Errorf("%v: %v and %q, want exit status 7 and the output obeyed", s, err, heard.written.String())
		}
	}
}

func TestAProgramKilledBySignalHasTheStatusThatShellsGiveIt(t *testing.T) {
	var got exitStatus
	if err := follow(exec.Command("sh", "-c", "kill -KILL $$")); !errors.As(err, &got) || got != 137 {
		t.Errorf("%v, want exit status 137", err)
	}
	if err := follow(exec.Command("true")); err != nil {
		t.Error(err)
	}
	if err := follow(exec.Command(filepath.Join(t.TempDir(), "missing"))); err == nil || errors.As(err, &got) {
		t.Errorf("%v, want an error because the program cannot be started", err)
	}
}

func TestTheLastAssignmentOfAVariableCounts(t *testing.T) {
	t.Parallel()
	environ := []string{"A=1", "AB=2", "A=3", "C"}
	if got := value(environ, "A"); got != "3" {
		t.Errorf("A is %q", got)
	}
	got := with(environ, "A", "4")
	if want := []string{"AB=2", "C", "A=4"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if want := []string{"A=1", "AB=2", "A=3", "C"}; !slices.Equal(environ, want) {
		t.Errorf("the environment itself is now %q", environ)
	}
}

// whenReady calls tell as soon as the program has written something.
type whenReady struct {
	written bytes.Buffer
	tell    func()
}

func (w *whenReady) Write(p []byte) (int, error) {
	if w.written.Len() == 0 {
		w.tell()
	}
	return w.written.Write(p)
}

// speakingModule makes a module with source as its only test file, and changes to the
// folder of the module.
func speakingModule(t *testing.T, source string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n", "sub/m_test.go": source} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range suiteVariables {
		t.Setenv(name, "") // so that t restores the variable at the end
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	t.Chdir(dir)
}

func said(t *testing.T, out string) map[string]string {
	t.Helper()
	_, after, found := strings.Cut(out, "said:")
	line, _, _ := strings.Cut(after, "\n")
	var got map[string]string
	if err := json.Unmarshal([]byte(line), &got); !found || err != nil {
		t.Fatalf("the suite printed no line with said: (%v):\n%s", err, out)
	}
	return got
}
