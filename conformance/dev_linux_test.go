package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// devWithin limits each wait, because a round builds the manager.
const devWithin = 10 * time.Minute

// devLoop is a running koboshi dev and its project.
type devLoop struct {
	harbour
	tmp    string // the folder for its temporary folders
	cmd    *exec.Cmd
	output *transcript
	exited chan struct{}
}

func (h harbour) startDev(tmp string, args ...string) *devLoop {
	h.Helper()
	return h.startDevIn(nil, tmp, args...)
}

// startDevIn starts koboshi dev with further variables in its environment.
func (h harbour) startDevIn(env []string, tmp string, args ...string) *devLoop {
	h.Helper()
	d := &devLoop{harbour: h, tmp: tmp, cmd: exec.Command(koboshi, append([]string{"dev"}, args...)...), output: &transcript{}, exited: make(chan struct{})}
	d.cmd.Dir, d.cmd.Stdout, d.cmd.Stderr = h.dir, d.output, d.output
	d.cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "XDG_CACHE_HOME="+filepath.Join(h.dir, ".cache"), "GOCACHE="+goEnv(h, "GOCACHE"), "NO_COLOR=1")
	d.cmd.Env = append(d.cmd.Env, env...)
	if err := d.cmd.Start(); err != nil {
		h.Fatal(err)
	}
	go func() { _ = d.cmd.Wait(); close(d.exited) }()
	h.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.exited
	})
	return d
}

// says waits until each of the texts occurs in the output of koboshi dev after position from.
func (d *devLoop) says(from int, texts ...string) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), devWithin)
	defer cancel()
	for _, text := range texts {
		err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
			return strings.Contains(d.output.String()[from:], text), nil
		})
		if err != nil {
			d.Fatalf("koboshi dev does not print %q: %v\n%s", text, err, d.output)
		}
	}
}

// edit replaces a text in a file of the project in one step, and waits for the texts.
func (d *devLoop) edit(name, old, with string, texts ...string) {
	d.Helper()
	file := filepath.Join(d.dir, filepath.FromSlash(name))
	data, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(data, []byte(old)) {
		d.Fatalf("%v: %s does not contain %q:\n%s", err, name, old, data)
	}
	from := len(d.output.String())
	saving := filepath.Join(filepath.Dir(file), ".saving")
	if err = os.WriteFile(saving, bytes.Replace(data, []byte(old), []byte(with), 1), 0o600); err == nil {
		err = os.Rename(saving, file)
	}
	if err != nil {
		d.Fatal(err)
	}
	d.says(from, texts...)
}

// left returns the processes whose command line names the folder for temporary folders.
func (d *devLoop) left() (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, file := range all {
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(d.tmp)) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return found
}

func (d *devLoop) folders() []string {
	found, _ := filepath.Glob(filepath.Join(d.tmp, "koboshi-dev-*")) // the pattern is valid
	return found
}

func TestDevBringsEachEditOfAScaffoldedProjectIntoItsManagerAndLeavesNothing(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	h.must(koboshi, "create", "api", "--group", "sea", "--version", "v1", "--kind", "Ship")
	h.must(koboshi, "create", "webhook", "--group", "sea", "--version", "v1", "--kind", "Ship", "--defaulting")
	d := h.startDev(t.TempDir())
	d.says(0, "koboshi: start: apply ", "Starting workers")

	const controller, types = "internal/controller/ship_controller.go", "api/v1/ship_types.go"
	d.edit(controller, "\nfunc ", "\nfunc init() { println(\"a body\") }\n\nfunc ", controller+": build ", "a body")
	d.edit(types, "type ShipSpec struct {", "type ShipSpec struct {\n\t// Port is where it lies.\n\t// +optional\n\tPort string `json:\"port,omitempty\"`\n",
		"+              port:", types+": generate ", ", build ", ", apply ", ", restart ")
	if out := h.must(koboshi, "kubectl", "explain", "ships.spec.port"); !strings.Contains(out, "Port is where it lies.") {
		t.Error(out)
	}
	d.edit(controller, "// +kubebuilder:rbac:", "// +kubebuilder:rbac:groups=\"\",resources=pods,verbs=list\n// +kubebuilder:rbac:",
		controller+": generate ", ", apply ", ", restart ")
	if out, err := h.run(koboshi, "kubectl", "auth", "can-i", "list", "pods", "-A", "--as", "system:serviceaccount:harbour-system:harbour-controller-manager"); err != nil {
		t.Errorf("the marker has no effect: %v %s", err, out)
	}
	d.edit(types, "Port string", "Port strin", "undefined: strin")
	d.edit(types, "Port strin", "Port string", ", restart ")
	d.edit("go.mod", "module example.com/harbour\n", "module example.com/harbour // a comment\n", "go.mod: generate ", ", build ", ", restart ")
	// Applying the sample calls the webhook through the listener.
	h.must(koboshi, "kubectl", "apply", "-f", "config/samples/sea_v1_ship.yaml")

	if len(d.left()) == 0 || len(d.folders()) != 1 {
		t.Errorf("the test does not find the manager: %q, %q", d.left(), d.folders())
	}
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-d.exited
	if code := d.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("after Ctrl-C, the exit code is %d\n%s", code, d.output)
	}
	if left, folders := d.left(), d.folders(); len(left)+len(folders) > 0 {
		t.Errorf("Ctrl-C leaves %q and %q", left, folders)
	}
	if _, err := os.Stat(filepath.Join(h.dir, ".koboshi")); err == nil {
		t.Error("Ctrl-C leaves .koboshi")
	}
	d.killed()
}

// killed starts koboshi dev again and kills it, twice; once with an instrumented manager.
func (d *devLoop) killed() {
	for _, args := range [][]string{{"--instrument"}, nil} {
		again := d.startDev(d.tmp, args...)
		again.says(0, "koboshi: start: apply ")
		if len(args) > 0 {
			again.explains()
		}
		if folders := again.folders(); len(folders) != 1 {
			d.Errorf("the folder of the killed koboshi dev is still there: %q", folders)
		}
		if err := again.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			d.Fatal(err)
		}
		<-again.exited
		ctx, cancel := context.WithTimeout(d.Context(), devWithin)
		err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) { return len(again.left()) == 0, nil })
		cancel()
		if err != nil {
			d.Errorf("SIGKILL leaves %q", again.left())
		}
	}
}

// explains waits until the inspector knows the reconcile of the sample from the manager itself.
func (d *devLoop) explains() {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), devWithin)
	defer cancel()
	var out string
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		out, _ = d.run(koboshi, "inspect", "why", ".", "ship/ship-sample")
		return strings.Contains(out, "because  Ship default/ship-sample was added") && strings.Contains(out, "queue    waited ") &&
			strings.Contains(out, "result   successful") && !strings.Contains(out, "inferred"), nil
	})
	if err != nil {
		d.Errorf("%v; the inspector says:\n%s\n%s", err, out, d.output)
	}
}

const deployedManager = `apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: manager}}
  template:
    metadata: {labels: {app: manager}}
    spec:
      containers: [{name: manager, image: example.com/manager:v1}]
`

func TestDevPausesTheManagerOfAClusterAndRestoresItEvenAfterSIGKILL(t *testing.T) {
	t.Parallel()
	p := startPlane(t, "--ephemeral", "--profile=workloads")
	h := harbour{t, t.TempDir()}
	if err := os.WriteFile(filepath.Join(h.dir, "install.yaml"), []byte(deployedManager), 0o600); err != nil {
		t.Fatal(err)
	}
	h.must(koboshi, "kubectl", "--kubeconfig", p.kubeconfig, "apply", "-f", "install.yaml")
	h.must(koboshi, "kubectl", "--kubeconfig", p.kubeconfig, "rollout", "status", "deployment/manager", "--timeout=2m")
	before := h.deployed(p)
	tmp := t.TempDir()
	dev := func() *devLoop {
		d := h.startDev(tmp, "--kubeconfig", p.kubeconfig, "--manifests=install.yaml", "--watch=*.txt", "--", koboshi, "kubectl", "get", "namespaces", "--watch")
		d.says(0, "Deployment default/manager is scaled to 0", "koboshi: start: ", "kube-system")
		if got := h.deployed(p); !strings.HasPrefix(got, "0 ") || !strings.Contains(got, "dev.koboshi.dev/paused") {
			t.Errorf("while koboshi dev runs, the Deployment has %s", got)
		}
		if pods := h.must(koboshi, "kubectl", "--kubeconfig", p.kubeconfig, "get", "pods", "-o", "name"); pods != "" {
			t.Errorf("the deployed manager still runs: %s", pods)
		}
		return d
	}
	d := dev()
	if err := d.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-d.exited
	d = dev()
	d.says(0, "an earlier session left Deployment default/manager scaled to 0", "Deployment default/manager is restored")
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-d.exited
	if after := h.deployed(p); after != before {
		t.Errorf("the Deployment has %s, want %s", after, before)
	}
	if sets := h.must(koboshi, "kubectl", "--kubeconfig", p.kubeconfig, "get", "replicasets", "-o", "yaml"); strings.Contains(sets, "dev.koboshi.dev") {
		t.Errorf("the mark is left on a ReplicaSet:\n%s", sets)
	}
	if _, err := os.Stat(filepath.Join(h.dir, ".koboshi")); err == nil {
		t.Error("Ctrl-C leaves .koboshi")
	}
}

// deployed returns the number of replicas, the annotations and the field managers of the deployed
// manager.
func (h harbour) deployed(p *plane) string {
	h.Helper()
	managers := strings.Fields(h.must(koboshi, "kubectl", "--kubeconfig", p.kubeconfig, "get", "deployment", "manager", "-o", "jsonpath={.metadata.managedFields[*].manager}"))
	slices.Sort(managers) // the server orders them by time
	return fmt.Sprint(h.must(koboshi, "kubectl", "--kubeconfig", p.kubeconfig, "get", "deployment", "manager", "-o", "jsonpath={.spec.replicas} {.metadata.annotations}"), managers)
}

const vaultSecret = `apiVersion: bugs.koboshi.dev/v1
kind: VaultSecret
metadata:
  name: token
spec:
  value: %s
`

func TestDevStartsAProgramInPythonAgainWhenItsFilesChange(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	h := harbour{t, t.TempDir()}
	h.copyPython()
	d := h.startDev(t.TempDir(), "--watch=src/*.py", "--crds=src/crd.yaml", "--samples=token.yaml", "--", "python3", "src/controller.py", "--repaired")
	d.says(0, "koboshi: start: apply ", ", samples ")
	d.holds("first")
	d.edit("src/controller.py", "def main():\n", "def main():\n    print(\"a new process\", flush=True)\n", "src/controller.py: restart ", "a new process")
	d.edit("token.yaml", "first", "second", "token.yaml: samples ")
	d.holds("second")
}

func TestDevStartsAProgramInNodeAgainWhenItsFilesChange(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	h := harbour{t, t.TempDir()}
	from := os.DirFS(filepath.Join("..", "bugs", "g2-no-owner"))
	for _, name := range []string{"bug.js", "repaired.js", "label.js", "controller.js", "crd.yaml", "package.json", "package-lock.json"} {
		data, err := fs.ReadFile(from, name)
		if err == nil {
			err = os.WriteFile(filepath.Join(h.dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(h.dir, "sample.yaml"), []byte(secretSet), 0o600); err != nil {
		t.Fatal(err)
	}
	h.must("npm", "ci", "--silent", "--no-audit", "--no-fund")
	d := h.startDev(t.TempDir(), "--watch=*.js", "--crds=crd.yaml", "--samples=sample.yaml", "--", "node", "controller.js", "--repaired")
	d.says(0, "koboshi: start: apply ", ", samples ")
	d.has("secret", "demo-tls", "name: demo-tls")
	d.edit("controller.js", "const due = new Set();", "const due = new Set();\nconsole.log('a new process');", "controller.js: restart ", "a new process")
	d.edit("sample.yaml", "[tls]", "[login]", "sample.yaml: samples ")
	d.has("secret", "demo-login", "name: demo-login")
}

const secretSet = `apiVersion: bugs.koboshi.dev/v1
kind: SecretSet
metadata:
  name: demo
spec:
  templates: [tls]
`

func TestDevChecksTheLastBuildInTheBackground(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	h := harbour{t, t.TempDir()}
	h.copyPython()
	controller := filepath.Join(h.dir, "src", "controller.py")
	code, err := os.ReadFile(controller)
	if err != nil {
		t.Fatal(err)
	}
	// A crash is found without a fault, and reported before the check ends.
	const fixed, broken = "        self.ensure_secret(owner)\n", "        os._exit(3)\n"
	if err := os.WriteFile(controller, bytes.Replace(code, []byte(fixed), []byte(broken), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	d := h.startDevIn([]string{normalPriority(t)}, t.TempDir(), "--check=9m", "--watch=src/*.py", "--crds=src/crd.yaml", "--samples=token.yaml", "--", "python3", "src/controller.py", "--repaired")
	d.says(0, "koboshi: check: CRASHED (no check was complete before): the controller exits ", "replay it with: koboshi check replay .koboshi/findings/")
	d.edit("src/controller.py", broken, fixed, "koboshi: src/controller.py: restart ")
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-d.exited
	if left := d.left(); len(left) > 0 {
		t.Errorf("Ctrl-C leaves %q", left)
	}
}

// normalPriority returns a PATH in which nice starts commands with normal priority. Beside other tests,
// a check of the lowest priority would get hardly any processor time for as long as they run.
func normalPriority(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const nice = "#!/bin/sh\nshift 2 # -n 19\nexec \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "nice"), []byte(nice), 0o700); err != nil {
		t.Fatal(err)
	}
	return "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")
}

// copyPython copies the Python controller and its sample.
func (h harbour) copyPython() {
	h.Helper()
	if err := os.CopyFS(filepath.Join(h.dir, "internal", "python"), os.DirFS(filepath.Join("..", "bugs", "internal", "python"))); err != nil {
		h.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(h.dir, "src"), os.DirFS(filepath.Join("..", "bugs", "c4-unwatched-child"))); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "token.yaml"), []byte(strings.Replace(vaultSecret, "%s", "first", 1)), 0o600); err != nil {
		h.Fatal(err)
	}
}

// holds waits until the Secret of the Python controller has the value.
func (d *devLoop) holds(value string) {
	d.Helper()
	d.has("secret", "token", base64.StdEncoding.EncodeToString([]byte(value)))
}

// has waits until the YAML of an object contains the text.
func (d *devLoop) has(kind, name, text string) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), devWithin)
	defer cancel()
	var out string
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		out, _ = d.run(koboshi, "kubectl", "get", kind, name, "-o", "yaml")
		return strings.Contains(out, text), nil
	})
	if err != nil {
		d.Fatalf("%s %s does not contain %q: %v\n%s\n%s", kind, name, text, err, out, d.output)
	}
}
