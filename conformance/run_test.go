package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The tests of programs run Pods as processes on this machine. The images of the Pods are
// mapped to the program in the folder program, and to a shell:
//
//	conformance/web:1, :2   answer "one" and "two" ($SAYS) on port 8080
//	conformance/sh          takes the arguments of a shell, such as ["-c", "script"]
const programs = `
run:
- {image: "conformance/web:1", path: program, env: {SAYS: one}}
- {image: "conformance/web:2", path: program, env: {SAYS: two}}
- {image: conformance/sh, path: /bin/sh, args: ["-c", "echo nothing to do"]}
`

var (
	programPlaneOnce   sync.Once
	sharedProgramPlane *plane
)

// runTakeouts shows that the tests of programs fail if all Pods
// are simulated. It does not include the tests of refused flags.
var runTakeouts = []takeout{
	{"TestProgram.*|TestNoProgram.*|TestLogsOf.*|TestExecRuns.*|TestExecGives.*|TestAttach.*|TestFilesAreCopied.*|TestPortForwardLeads.*|TestServiceOfPrograms.*|TestNotOneRequest.*", "--config="},
}

// programPlane returns the plane for tests of programs that use only their own namespace.
// It has profile full and two simulated nodes, and keeps its state in memory.
func programPlane(t *testing.T) *plane {
	t.Helper()
	needNamespaces(t)
	programPlaneOnce.Do(func() {
		dir, err := os.MkdirTemp("", "koboshi-conformance-")
		if err != nil {
			t.Fatal(err)
		}
		if sharedProgramPlane, err = launch(dir, "--ephemeral", "--nodes=2", "--config="+programsIn(t, dir)); err != nil {
			t.Fatal(err)
		}
	})
	if sharedProgramPlane == nil {
		t.Fatal("the plane with programs did not start; see the first test that needed it")
	}
	return sharedProgramPlane
}

// needNamespaces skips a test if processes are not allowed to create namespaces.
func needNamespaces(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("programs need Linux")
	}
	if out, err := exec.Command("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "true").CombinedOutput(); err != nil {
		t.Skipf("this system forbids user namespaces: %v\n%s", err, out)
	}
}

// programsIn builds the program into dir and returns a file for --config.
func programsIn(t *testing.T, dir string) (config string) {
	t.Helper()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "program"), "./program")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config = filepath.Join(dir, "programs.yaml")
	writeFile(t, config, programs)
	return config
}

// waitForPod waits until is(pod) returns nil, and then returns the Pod.
func (p *plane) waitForPod(t *testing.T, ns, name, what string, is func(*corev1.Pod) error) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, "pod "+name+": "+what, func(ctx context.Context) (err error) {
		if pod, err = p.client.CoreV1().Pods(ns).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if err = is(pod); err != nil {
			return fmt.Errorf("%w\n%s", err, p.story(ctx, pod))
		}
		return nil
	})
	return pod
}

// story returns the states of a Pod and its Events, which a user would check first.
func (p *plane) story(ctx context.Context, pod *corev1.Pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, "phase %s on %q with %q\n", pod.Status.Phase, pod.Spec.NodeName, pod.Status.PodIP)
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		fmt.Fprintf(&b, "%s: ready %t, restarts %d, now %s, before %s\n", c.Name, c.Ready, c.RestartCount, stateOf(c.State), stateOf(c.LastTerminationState))
	}
	for _, e := range p.eventsOf(ctx, pod) {
		fmt.Fprintf(&b, "%s %s: %s\n", e.Type, e.Reason, e.Message)
	}
	return b.String()
}

func stateOf(s corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Waiting != nil:
		return "waiting: " + s.Waiting.Reason + " " + s.Waiting.Message
	case s.Terminated != nil:
		return fmt.Sprintf("ended with %d: %s %s", s.Terminated.ExitCode, s.Terminated.Reason, s.Terminated.Message)
	}
	return "unknown"
}

func (p *plane) eventsOf(ctx context.Context, object metav1.Object) []corev1.Event {
	list, err := p.client.CoreV1().Events(object.GetNamespace()).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(object.GetUID())})
	if err != nil {
		return nil
	}
	return list.Items
}

func ready(pod *corev1.Pod) error {
	if !isReady(pod) {
		return errors.New("not Ready")
	}
	return nil
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		if pod.Status.Phase != phase {
			return fmt.Errorf("phase %s, want %s", pod.Status.Phase, phase)
		}
		return nil
	}
}

// waitForPrograms waits until a namespace has exactly n Pods and all are Ready.
func (p *plane) waitForPrograms(t *testing.T, ns string, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d ready pods", n), func(ctx context.Context) error {
		pods, err := p.pods(ctx, ns)
		if err != nil {
			return err
		}
		for i := range pods {
			if !isReady(&pods[i]) {
				return fmt.Errorf("pod %s: %s", pods[i].Name, p.story(ctx, &pods[i]))
			}
		}
		return wantCount("pods", len(pods), n)
	})
}

// waitForLogs waits until the log of a container contains want.
func (p *plane) waitForLogs(t *testing.T, want string, args ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("logs %v with %q", args, want), func(context.Context) error {
		out, err := p.tryKubectl("", append([]string{"logs"}, args...)...)
		if err != nil || !strings.Contains(out, want) {
			return fmt.Errorf("%v: %q", err, out)
		}
		return nil
	})
}

// exec runs a shell script in a container, and fails the test if the script fails.
func (p *plane) exec(t *testing.T, ns, pod, script string) string {
	t.Helper()
	return p.kubectl(t, "exec", "-n", ns, pod, "--", "/bin/sh", "-c", script)
}

// answers fetches a page over a new connection and returns it.
func answers(ctx context.Context, method, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return "", err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

func mustAnswer(t *testing.T, url, want string) {
	t.Helper()
	if got, err := answers(t.Context(), http.MethodGet, url); err != nil || got != want {
		t.Errorf("GET %s: %q, %v; want %q", url, got, err, want)
	}
}

// waitForAnswer waits until the server in a Pod answers with want.
func (p *plane) waitForAnswer(t *testing.T, ns, name, want string) {
	t.Helper()
	p.waitForPod(t, ns, name, "to answer", func(pod *corev1.Pod) error {
		got, err := answers(t.Context(), http.MethodGet, web(pod))
		if err == nil && got != want {
			err = fmt.Errorf("it answers %q, want %q", got, want)
		}
		return err
	})
}

// post changes the state of a program; see the program's handler.
func post(t *testing.T, url string) {
	t.Helper()
	if _, err := answers(t.Context(), http.MethodPost, url); err != nil {
		t.Fatal(err)
	}
}

func web(pod *corev1.Pod) string { return "http://" + pod.Status.PodIP + ":8080" }

// processesWith returns the processes of this machine that have token in their arguments
// or their environment, including processes in namespaces.
func processesWith(t *testing.T, token string) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A process may end in the meantime, and processes of other users do not matter.
		args, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		env, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if bytes.Contains(args, []byte(token)) || bytes.Contains(env, []byte(token)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func noProcessWith(t *testing.T, token string) func(context.Context) error {
	return func(context.Context) error {
		if pids := processesWith(t, token); len(pids) > 0 {
			return fmt.Errorf("processes %v are left", pids)
		}
		return nil
	}
}

const webPod = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: $NS, labels: {app: web}}
spec:
  containers: [{name: web, image: "conformance/web:1", args: ["-says=$NS"]}]
`

// shell returns a Pod whose only container runs a script. more is added to the spec of
// the Pod.
func shell(name, script string, more ...string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: $NS, labels: {app: %[1]s}, annotations: {note: "of %[1]s"}}
spec:
  terminationGracePeriodSeconds: 1
  %s
  containers:
  - name: main
    image: conformance/sh
    args: ["-c", %s]
`, name, strings.Join(more, "\n  "), strconv.Quote(script))
}

// forever keeps a shell running, and lets it handle signals.
const forever = "; while :; do sleep 0.1; done"

func TestProgramRunsOnNodeLocalAndOtherPodsStaySimulated(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, webPod+"---"+strings.ReplaceAll(onePod, "name: web", "name: other"))
	p.waitForPrograms(t, ns, 2)
	table := p.kubectl(t, "get", "pods", "-n", ns, "-o", "wide", "--no-headers")
	for line := range strings.Lines(table) {
		name, rest, _ := strings.Cut(line, " ")
		local := name == "web"
		if strings.Contains(rest, " 127.") != local || strings.Contains(rest, " local ") != local || strings.Contains(rest, " node-") == local {
			t.Errorf("pod %s is shown as %s", name, rest)
		}
	}
	p.waitForAnswer(t, ns, "web", ns+" from web\n")
}

func TestProgramsOfTwoPodsListenOnTheSamePort(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, webPod+"---"+strings.ReplaceAll(webPod, "name: web, namespace", "name: web2, namespace"))
	p.waitForPrograms(t, ns, 2)
	for _, name := range []string{"web", "web2"} {
		p.waitForAnswer(t, ns, name, ns+" from "+name+"\n")
	}
}

func TestProgramIsTheInvokingUserOutsideAndAnotherInside(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("who", "echo $(id -u) $NS"+forever, "securityContext: {runAsNonRoot: true}"))
	p.applyIn(t, ns, shell("said", "id -u"+forever, "securityContext: {runAsUser: 1234, runAsGroup: 5678}"))
	p.waitForPrograms(t, ns, 2)
	p.waitForLogs(t, "65532 "+ns, "-n", ns, "who")
	p.waitForLogs(t, "1234", "-n", ns, "said")
	if got := p.exec(t, ns, "said", "id -g"); got != "5678\n" {
		t.Errorf("group %q", got)
	}
	examined := 0
	for _, pid := range processesWith(t, "echo $(id -u) "+ns) {
		info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the process has ended in the meantime
		}
		if err != nil {
			t.Fatal(err)
		}
		examined++
		if got := int(info.Sys().(*syscall.Stat_t).Uid); got != os.Getuid() {
			t.Errorf("process %d is of user %d, want %d", pid, got, os.Getuid())
		}
	}
	if examined == 0 {
		t.Error("this machine has no process of the program")
	}
}

func TestProgramOfADaemonSetRunsOnNodeLocalOnly(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: $NS}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "conformance/web:1"}]}
`)
	p.waitForPodsOn(t, ns, "local", "node-1", "node-2")
	pods, err := p.pods(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		address, err := netip.ParseAddr(pod.Status.PodIP)
		if err != nil || address.IsLoopback() != (pod.Spec.NodeName == "local") {
			t.Errorf("the pod on %s has %q", pod.Spec.NodeName, pod.Status.PodIP)
		}
	}
}

func TestProgramOnTheWrongNodePendsAndSaysWhy(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	const pinned = `
---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: $NS}
spec:
  nodeSelector: {kubernetes.io/hostname: %s}
  containers: [{name: main, image: %s}]
`
	p.applyIn(t, ns, fmt.Sprintf(pinned, "web", "node-1", "conformance/web:1")+fmt.Sprintf(pinned, "other", "local", "nginx"))
	for name, says := range map[string]string{
		"web":   "node(s) only simulate Pods, but this Pod has an image given with --run",
		"other": "node(s) only run Pods with an image given with --run",
	} {
		p.waitForPod(t, ns, name, "an event that says "+says, func(pod *corev1.Pod) error {
			for _, e := range p.eventsOf(t.Context(), pod) {
				if e.Reason == "FailedScheduling" && strings.Contains(e.Message, says) {
					return nil
				}
			}
			return errors.New("no event says so")
		})
	}
}

func TestProgramThatCannotBeHonouredIsRefusedWithAnEvent(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	const spec = `
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: $NS}
spec:
  containers:
  - {name: web, image: "conformance/web:1"%s}
  %s
`
	for _, test := range []struct{ name, container, pod, says string }{
		{"privileged", ", securityContext: {privileged: true}", "", "privileged"},
		{"hostpath", `, volumeMounts: [{name: v, mountPath: /mnt/v}]`, "volumes: [{name: v, hostPath: {path: /etc}}]", "/etc"},
		{"sidecar", "", "- {name: proxy, image: example.com/proxy}", "--run example.com/proxy"},
		{"hostpid", "", "hostPID: true", "hostPID"},
	} {
		pod := strings.ReplaceAll(spec, "\n  %s\n", "\n"+strings.Repeat(" ", 2)+test.pod+"\n")
		p.applyIn(t, ns, fmt.Sprintf(pod, test.name, test.container))
	}
	for name, says := range map[string]string{"privileged": "privileged", "hostpath": "/etc", "sidecar": "--run example.com/proxy", "hostpid": "host"} {
		p.waitForPod(t, ns, name, "a warning that says "+says, func(pod *corev1.Pod) error {
			for _, e := range p.eventsOf(t.Context(), pod) {
				if e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, says) {
					return nil
				}
			}
			return errors.New("no warning says so")
		})
	}
	for _, name := range []string{"privileged", "hostpath", "hostpid"} {
		pod, err := p.client.CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if isReady(pod) {
			t.Errorf("pod %s runs nevertheless", name)
		}
	}
}

func TestFlagsForProgramsAreRefusedWithTheNextAction(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	dir := t.TempDir()
	mustRefuse(t, dir, filepath.Join(dir, "missing")+" does not exist; build the program first", "--run=web=missing")
	mustRefuse(t, dir, "is not of the form IMAGE=PATH", "--run=web")
	mustRefuse(t, dir, "add --controllers=scheduler", "--run=web=/bin/sh", "--profile=gc")
	writeFile(t, filepath.Join(dir, "programs.yaml"), "run:\n- image: web\n  exec: /bin/sh\n")
	mustRefuse(t, dir, "line 3: unknown field", "--config=programs.yaml")
	if _, err := os.Stat(filepath.Join(dir, ".koboshi")); !os.IsNotExist(err) {
		t.Errorf("a data directory was made: %v", err)
	}
}
