package conformance

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// A testRun holds the results of one finished koboshi test.
type testRun struct {
	code           int
	stdout, stderr string
}

// testCommand runs koboshi test with these arguments.
func testCommand(t *testing.T, stdin string, args ...string) testRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, koboshi, append([]string{"test"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return testRun{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func TestACommandGetsAPlaneAndItsExitCodeIsPassedOn(t *testing.T) {
	t.Parallel()
	const script = `
echo to standard error >&2
stat -L -c %a "$KUBECONFIG"
"$TEST_ASSET_KUBECTL" get namespace default -o name
"$TEST_ASSET_KUBE_APISERVER" --version
for program in etcd kube-apiserver kubectl; do [ -x "$KUBEBUILDER_ASSETS/$program" ] || echo no "$program"; done
[ "$TEST_ASSET_ETCD" = "$KUBEBUILDER_ASSETS/etcd" ] || echo "another etcd: $TEST_ASSET_ETCD"
echo "$KUBECONFIG"
exit 7`
	got := testCommand(t, "", "--profile", "api", "--", "sh", "-c", script)
	kubeconfig := lastLine(got.stdout)
	want := "600\nnamespace/default\nKubernetes v1.37.0\n" + kubeconfig + "\n"
	if got.code != 7 || got.stdout != want || got.stderr != "to standard error\n" {
		t.Errorf("exit code %d\n%s\nwant 7 and\n%s\nstandard error: %s", got.code, got.stdout, want, got.stderr)
	}
	if _, err := os.Stat(filepath.Dir(kubeconfig)); !os.IsNotExist(err) {
		t.Errorf("the plane's folder %s is still there (%v)", filepath.Dir(kubeconfig), err)
	}
}

// python creates a namespace and a Pod with the client certificate of the kubeconfig, and
// waits until the Pod is Ready. It uses only the standard library.
const python = `
import base64, json, os, re, ssl, tempfile, time, urllib.error, urllib.request

text = open(os.environ["KUBECONFIG"]).read()
field = lambda name: re.search(name + r": (\S+)", text).group(1)
with tempfile.NamedTemporaryFile(mode="wb") as pem:
    for name in ("client-certificate-data", "client-key-data"):
        pem.write(base64.b64decode(field(name)))
    pem.flush()
    context = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())
    context.load_cert_chain(pem.name)

def ask(method, path, body=None):
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(field("server") + path, data, {"Content-Type": "application/json"}, method=method)
    return json.load(urllib.request.urlopen(request, context=context))

pods = "/api/v1/namespaces/default/pods"
ask("POST", pods, {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web"}]}})
while True:
    status = ask("GET", pods + "/web")["status"]
    if any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", [])):
        break
    time.sleep(0.02)
print("ready in Python")
`

func TestACommandInPythonRunsPodsInTheDefaultProfile(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	got := testCommand(t, python, "--", "python3", "-") // the program comes through a pipe
	if got.code != 0 || got.stdout != "ready in Python\n" || got.stderr != "" {
		t.Errorf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

func TestTheProfileOfACommandIsAlsoForThePlanesThatItStartsItself(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--profile=api"}, "set to ()"},
		{[]string{"--profile=api", "--controllers=gc,namespace"}, "set to (garbage-collector-controller,namespace-controller)"},
	} {
		got := testCommand(t, "", append(test.flags, "--", "sh", "-c", `echo "${KOBOSHI_CONTROLLERS-unset}${KOBOSHI_CONTROLLERS+set to ($KOBOSHI_CONTROLLERS)}"`)...)
		if line := lastLine(got.stdout); !strings.HasSuffix(line, test.want) || got.code != 0 {
			t.Errorf("%q: %s, want %s\n%s", test.flags, line, test.want, got.stderr)
		}
	}
}

func TestSignalsReachTheCommandAndItsChildrenAndNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			// The shell obeys a signal only after its child has ended, so both must get the signal.
			// The exit code shows that the shell, and not koboshi, decides when to end.
			const script = `trap 'echo obeyed; exit 5' INT TERM; echo "$KUBECONFIG"; sh -c 'trap "exit 0" INT TERM; echo $$; while :; do sleep 0.05; done'`
			out, notes := &transcript{}, &transcript{} // a plane that starts slowly is noted
			cmd := exec.CommandContext(t.Context(), koboshi, "test", "--profile=api", "--", "sh", "-c", script)
			cmd.Stdout, cmd.Stderr = out, notes
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the command to run", func(context.Context) error {
				return wantCount("lines", strings.Count(out.String(), "\n"), 2)
			})
			var kubeconfig string
			var child int
			for line := range strings.Lines(out.String()) {
				if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
					child = pid
				} else {
					kubeconfig = strings.TrimSpace(line)
				}
			}
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 5 || !strings.Contains(out.String(), "obeyed\n") {
				t.Errorf("exit code %d, want that of the command, 5\n%s%s", code, out, notes)
			}
			if syscall.Kill(child, 0) == nil {
				t.Error("the child of the command still runs")
			}
			if _, err := os.Stat(filepath.Dir(kubeconfig)); !os.IsNotExist(err) {
				t.Errorf("the plane's folder is still there (%v)", err)
			}
			server, err := url.Parse(config.Host)
			if err != nil {
				t.Fatal(err)
			}
			if conn, err := net.Dial("tcp", server.Host); err == nil {
				_ = conn.Close()
				t.Error("the API server still answers")
			}
		})
	}
}

func TestACommandThatDoesNotExistIsNamedInOneLine(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"pytset":            "koboshi: there is no program pytset on the PATH; install it, or write its path\n",
		"./missing/program": "koboshi: there is no program ./missing/program; correct the path, which is relative to the current folder\n",
		plain:               "koboshi: " + plain + " cannot be run: permission denied; name an executable file\n",
	} {
		if got := testCommand(t, "", "--", command, "-v"); got.code != 127 || got.stdout != "" || got.stderr != want {
			t.Errorf("%s: exit code %d, want 127\n%s%s", command, got.code, got.stdout, got.stderr)
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
