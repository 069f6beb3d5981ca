package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// On each start, programOfAPod reports whether it sees the user's credentials, and whether a
// program of an earlier run is still running. It starts a process that has left the session.
const programOfAPod = `#!/bin/sh
exec 9>DIR/lock
overlap=; flock -n 9 || overlap=yes
leaked=$(env; cat THEIRS/.kube/config THEIRS/.aws/credentials "$HOME/.kube/config" 2>/dev/null)
case "$leaked" in *canary-secret*) leaked=yes ;; *) leaked= ;; esac
echo "leaked=$leaked overlap=$overlap home=$HOME" >> DIR/seen
trap '' TERM
setsid sh -c 'sleep 1000; : TOKEN' &
while sleep 1000; do :; done; : TOKEN
`

// podScenario makes a Pod beside a Widget, and waits until the Pod is Ready.
const podScenario = `apiVersion: check.koboshi.dev/v1
kind: Scenario
name: pod
steps:
- name: create
  apply:
  - {apiVersion: v1, kind: Pod, metadata: {name: web, namespace: default}, spec: {containers: [{name: web, image: "example.org/web:1"}]}}
  - {apiVersion: example.com/v1, kind: Widget, metadata: {name: demo, namespace: default}, spec: {size: small}}
  wait:
  - {apiVersion: v1, kind: Pod, namespace: default, name: web, field: 'status.conditions[?(@.type=="Ready")].status', equals: "True"}
  expect:
  - {apiVersion: v1, kind: Pod, namespace: default, name: web, field: spec.nodeName, equals: local}
`

// checkWithPods prepares a check whose scenario has a Pod with a real program. The user's home
// and environment are full of credentials.
func checkWithPods(t *testing.T, token string, flags ...string) *checking {
	t.Helper()
	needNamespaces(t)
	dir, home := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(home, ".kube", "config"), "canary-secret")
	writeFile(t, filepath.Join(home, ".aws", "credentials"), "canary-secret")
	writeFile(t, filepath.Join(dir, "pod.yaml"), podScenario)
	program := filepath.Join(dir, "web")
	writeFile(t, program, strings.NewReplacer("DIR", dir, "THEIRS", home, "TOKEN", token).Replace(programOfAPod))
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--crds=widgets.yaml", "--scenario=pod.yaml", "--workers=1", "--seed=7", "--horizon=0"}, flags...)
	c := checkIn(t, dir, append(append(args, "--"), checked(t))...)
	c.cmd.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG="+filepath.Join(home, ".kube", "config"), "AWS_SECRET_ACCESS_KEY=canary-secret")
	return c
}

func TestProgramsRunInThePodsOfACheckAndEndWithEachRun(t *testing.T) {
	t.Parallel()
	token := "check-pods-" + strconv.Itoa(os.Getpid())
	c := checkWithPods(t, token, "--faults=kill-lost,restart", "-o=json=report.json")
	writeFile(t, filepath.Join(c.dir, "koboshi.yaml"), "check:\n  run:\n  - example.org/web=web\n")
	c.start(t)
	c.end(t, 0)
	if pids := processesWith(t, token); len(pids) > 0 {
		t.Errorf("the check has ended before processes %v", pids)
	}
	var report struct{ Runs, References int }
	data, err := os.ReadFile(filepath.Join(c.dir, "report.json"))
	if err == nil {
		err = json.Unmarshal(data, &report)
	}
	seen, err2 := os.ReadFile(filepath.Join(c.dir, "seen"))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if report.Runs <= report.References {
		t.Errorf("%d runs, %d of them without a fault", report.Runs, report.References)
	}
	starts := strings.Split(strings.TrimSpace(string(seen)), "\n")
	for _, start := range starts {
		if start != "leaked= overlap= home=/" {
			t.Errorf("a program reports %s", start)
		}
	}
	// A kill of the controller does not restart the program. The report does not count the run with
	// disturbances.
	if n := len(starts); n < report.Runs || n > report.Runs+1 {
		t.Errorf("%d starts in %d runs", n, report.Runs)
	}
}

func TestNoProgramOutlivesACheckThatIsKilled(t *testing.T) {
	t.Parallel()
	token := "killed-check-pods-" + strconv.Itoa(os.Getpid())
	c := checkWithPods(t, token, "--run=example.org/web=./web")
	c.start(t)
	eventually(t, "the program to start", func(context.Context) error {
		if len(processesWith(t, token)) == 0 {
			return errors.New("the processes of the Pod are not there")
		}
		return nil
	})
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.exited:
	case <-time.After(checkWithin):
		t.Fatal("the check is still running")
	}
	eventually(t, "the programs to end", noProcessWith(t, token))
}

func TestReplayAsksBeforeItRunsAProgramInAPod(t *testing.T) {
	t.Parallel()
	c := checkWithPods(t, "replay-asks", "--run=example.org/web=./web", "--env=BUG=first-exists", "--faults=kill-lost,lose-response", "--stop-at-first", "--findings=saved", "-o=json=report.json")
	c.start(t)
	c.end(t, 1)
	saved, err := filepath.Glob(filepath.Join(c.dir, "saved", "*.json"))
	if err != nil || len(saved) == 0 {
		t.Fatalf("no finding is saved: %v", err)
	}
	replay := checkIn(t, c.dir, "replay", saved[0])
	replay.start(t)
	replay.end(t, 2)
	if said := replay.stderr.String(); !strings.Contains(said, "for Pods with the image example.org/web") || !strings.Contains(said, filepath.Join(c.dir, "web")) {
		t.Errorf("the replay asks:\n%s", said)
	}
}
