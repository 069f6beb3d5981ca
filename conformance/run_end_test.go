package conformance

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// spawning returns a script that starts processes with token among their arguments. The
// processes are hard to end: they ignore signals, and one of them has left the session.
func spawning(token string) string {
	return "trap '' TERM HUP INT; setsid sh -c 'sleep 1000; : " + token + "' & echo up" + forever + "; : " + token
}

// descendants returns the processes that pid has started, directly or indirectly.
func descendants(t *testing.T, pid int) (pids []int) {
	t.Helper()
	parents := map[int]int{}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended in the meantime
		}
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		// The name in parentheses may contain any characters, and is followed by the state
		// and the parent.
		fields := strings.Fields(string(data[strings.LastIndex(string(data), ")")+1:]))
		if parents[child], err = strconv.Atoi(fields[1]); err != nil {
			t.Fatal(err)
		}
	}
	family := []int{pid}
	for i := 0; i < len(family); i++ {
		for child, parent := range parents {
			if parent == family[i] {
				family = append(family, child)
			}
		}
	}
	return family[1:]
}

// alive reports whether a process is running. A zombie does not count, because process 1
// of this machine may reap it late.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.HasPrefix(string(stat[strings.LastIndex(string(stat), ")")+1:]), " Z")
}

// startProgramPlane starts a plane for one test. The function again starts another plane in the
// same folder.
func startProgramPlane(t *testing.T, args ...string) (p *plane, again func() *plane) {
	t.Helper()
	needNamespaces(t)
	dir := t.TempDir()
	args = append([]string{"--config=" + programsIn(t, dir)}, args...)
	again = func() *plane { return startPlaneIn(t, dir, args...) }
	return again(), again
}

func TestNoProgramOutlivesItsPlane(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p, _ := startProgramPlane(t)
			ns := p.namespace(t)
			token := "outlives-" + ns + "-" + strconv.Itoa(p.cmd.Process.Pid)
			p.applyIn(t, ns, shell("stays", spawning(token)))
			p.waitForPrograms(t, ns, 1)
			p.waitForLogs(t, "up", "-n", ns, "stays")
			family := descendants(t, p.cmd.Process.Pid)
			if n := len(processesWith(t, token)); n < 2 || len(family) < 3 {
				t.Fatalf("%d processes of the Pod, and processes %v of the plane", n, family)
			}
			if err := p.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if signal == syscall.SIGTERM {
				p.mustExit(t, 0)
				if pids := processesWith(t, token); len(pids) > 0 {
					t.Errorf("koboshi up has ended before processes %v", pids)
				}
			}
			<-p.exited
			eventually(t, "the programs to end", noProcessWith(t, token))
			eventually(t, "all processes that the plane started to end", func(context.Context) error {
				left := slices.DeleteFunc(slices.Clone(family), func(pid int) bool {
					return !alive(pid)
				})
				if len(left) > 0 {
					return fmt.Errorf("processes %v are left", left)
				}
				return nil
			})
			if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), p.dir) {
				t.Errorf("mounts are left below %s: %v", p.dir, err)
			}
		})
	}
}

func TestNoProgramOutlivesItsPod(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	token := "outlives-" + ns
	p.applyIn(t, ns, shell("stays", spawning(token)))
	p.waitForPrograms(t, ns, 1)
	p.waitForLogs(t, "up", "-n", ns, "stays")
	if len(processesWith(t, token)) < 2 {
		t.Fatal("the processes of the Pod are not there")
	}
	p.kubectl(t, "delete", "pod", "-n", ns, "stays")
	eventually(t, "the programs to end", noProcessWith(t, token))
}

func TestProgramsRunAgainAfterARestart(t *testing.T) {
	t.Parallel()
	p, again := startProgramPlane(t)
	p.applyIn(t, "default", site+"---"+webPod)
	for _, end := range []func(*plane){(*plane).stop, (*plane).kill} {
		p.waitForSite(t, "default")
		end(p)
		p = again()
		p.waitForPrograms(t, "default", 3)
		p.waitForSite(t, "default")
		// Until the kubelet checks the Pod, the Pod still has its status from before the restart.
		p.waitForAnswer(t, "default", "web", "default from web\n")
		var line string
		eventually(t, "the address to be printed", func(context.Context) error {
			for line = range strings.Lines(p.output.String()) {
				if strings.HasPrefix(line, "service default/site  ") {
					return nil
				}
			}
			return fmt.Errorf("output %q", p.output)
		})
		url := reachableAt.FindString(line)
		eventually(t, "an answer of the Service", func(ctx context.Context) error {
			_, err := answers(ctx, http.MethodGet, url)
			return err
		})
	}
}

func TestProgramsAreSimulatedAfterARestartWithoutThem(t *testing.T) {
	t.Parallel()
	p, _ := startProgramPlane(t)
	p.applyIn(t, "default", site)
	p.waitForSite(t, "default")
	if _, err := p.client.CoreV1().Nodes().Get(t.Context(), "local", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	p.stop()
	p = startPlaneIn(t, p.dir)
	eventually(t, "two simulated pods and no node local", func(ctx context.Context) error {
		if _, err := p.client.CoreV1().Nodes().Get(ctx, "local", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("node local: %w", err)
		}
		pods, err := p.pods(ctx, "default")
		if err != nil {
			return err
		}
		for i := range pods {
			if pods[i].Spec.NodeName != "node-1" || !isReady(&pods[i]) {
				return fmt.Errorf("pod %s is on %s, Ready %t", pods[i].Name, pods[i].Spec.NodeName, isReady(&pods[i]))
			}
		}
		return wantCount("pods", len(pods), 2)
	})
}

func TestProgramsOfTwoPlanesHaveDifferentAddresses(t *testing.T) {
	t.Parallel()
	var networks []netip.Prefix
	for range 2 {
		p, _ := startProgramPlane(t, "--ephemeral", "--profile=workloads")
		p.applyIn(t, "default", webPod)
		pod := p.waitForPod(t, "default", "web", "Ready", ready)
		network, err := netip.MustParseAddr(pod.Status.PodIP).Prefix(16)
		if err != nil {
			t.Fatal(err)
		}
		networks = append(networks, network)
	}
	if networks[0] == networks[1] || !networks[0].Addr().IsLoopback() {
		t.Errorf("networks %v", networks)
	}
}
