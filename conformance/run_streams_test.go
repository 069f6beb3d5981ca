package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// start runs kubectl in the background until the test ends.
func (p *plane) start(t *testing.T, args ...string) *transcript {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := &transcript{}
	cmd := exec.CommandContext(ctx, koboshi, append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig, "KUBECACHEDIR="+filepath.Join(p.dir, "cache"))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	return out
}

func TestLogsOfAProgramAreWhatItWrote(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("talks", "echo out; echo err >&2; printf unfinished; exit 1", "restartPolicy: Never")+`
  - {name: other, image: conformance/sh, args: ["-c", "echo other"]}
`)
	p.waitForPod(t, ns, "talks", "Failed", inPhase("Failed"))
	got := p.kubectl(t, "logs", "-n", ns, "talks", "-c", "main")
	if !strings.Contains(got, "out\n") || !strings.Contains(got, "err\n") || !strings.Contains(got, "unfinished") {
		t.Errorf("logs %q", got)
	}
	if got := p.kubectl(t, "logs", "-n", ns, "talks", "-c", "other"); got != "other\n" {
		t.Errorf("logs -c other: %q", got)
	}
	if got := p.kubectl(t, "logs", "-n", ns, "talks", "--all-containers", "--prefix", "--tail=1"); !strings.Contains(got, "[pod/talks/other] other\n") {
		t.Errorf("logs --all-containers: %q", got)
	}
	if got := p.kubectl(t, "logs", "-n", ns, "talks", "-c", "other", "--timestamps"); !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+ other\n$`).MatchString(got) {
		t.Errorf("logs --timestamps: %q", got)
	}
}

func TestLogsOfAProgramAreFollowed(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("counts", "until test -e /e/go; do sleep 0.05; done; echo one; until test -e /e/end; do sleep 0.05; done; echo two", "restartPolicy: Never", "volumes: [{name: e, emptyDir: {}}]")+`
    volumeMounts: [{name: e, mountPath: /e}]
`)
	p.waitForPrograms(t, ns, 1)
	logs := p.start(t, "logs", "-f", "-n", ns, "counts")
	p.exec(t, ns, "counts", "touch /e/go")
	eventually(t, "the first line", func(context.Context) error {
		if got := logs.String(); got != "one\n" {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	// The new file ends the program, and perhaps the shell that creates it as well, so the
	// error does not matter.
	_, _ = p.tryKubectl("", "exec", "-n", ns, "counts", "--", "/bin/sh", "-c", "touch /e/end")
	eventually(t, "the second line", func(context.Context) error {
		if got := logs.String(); got != "one\ntwo\n" {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
}

func TestLogsOfTheProgramBeforeARestartAreKept(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("twice", "test -e /e/been && echo second && sleep 1000; touch /e/been; echo first; exit 1", "volumes: [{name: e, emptyDir: {}}]")+`
    volumeMounts: [{name: e, mountPath: /e}]
`)
	p.waitForPod(t, ns, "twice", "restarted", restarted)
	p.waitForLogs(t, "second", "-n", ns, "twice")
	if got := p.kubectl(t, "logs", "-n", ns, "twice", "--previous"); got != "first\n" {
		t.Errorf("logs --previous: %q", got)
	}
}

func TestExecRunsBesideTheProgram(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("host", ":"+forever, "volumes: [{name: e, emptyDir: {}}]")+`
    env: [{name: WORD, value: hello}]
    workingDir: /usr
    volumeMounts: [{name: e, mountPath: /e}]
`)
	p.waitForPrograms(t, ns, 1)
	if got := p.exec(t, ns, "host", "echo $WORD; pwd; echo > /e/x; ls /e; id -u"); got != "hello\n/usr\nx\n65532\n" {
		t.Errorf("exec printed %q", got)
	}
	if got := p.exec(t, ns, "host", "tr '\\0' ' ' < /proc/1/cmdline"); !strings.Contains(got, "sleep 0.1") {
		t.Errorf("process 1 is %q, and not the program", got)
	}
	out, err := p.tryKubectl("", "exec", "-n", ns, "host", "--", "/bin/sh", "-c", "echo out; echo err >&2; exit 7")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 || !strings.Contains(out, "out\n") || !strings.Contains(out, "err\n") {
		t.Errorf("exit code of %v, want 7; %q", err, out)
	}
	if out, err = p.tryKubectl("one\ntwo\n", "exec", "-i", "-n", ns, "host", "--", "wc", "-l"); err != nil || strings.TrimSpace(out) != "2" {
		t.Errorf("with input: %q, %v", out, err)
	}
	large := strings.Repeat("0123456789abcdef", 1<<16)
	if out, err = p.tryKubectl(large, "exec", "-i", "-n", ns, "host", "--", "cat"); err != nil || out != large {
		t.Errorf("sent %d bytes and received %d: %v", len(large), len(out), err)
	}
	if out, err = p.tryKubectl("", "exec", "-n", ns, "host", "--", "/no/such/program"); err == nil || !strings.Contains(out, "no such file") {
		t.Errorf("exec of a missing program: %q, %v", out, err)
	}
}

func TestExecGivesATerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("the program script, which provides a terminal, is not installed")
	}
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("host", ":"+forever))
	p.waitForPrograms(t, ns, 1)
	// kubectl requests a terminal only if it has one itself. kubectl sends the window's
	// size separately from the command, so with any runtime the command may arrive first.
	// The script waits up to 20 s for the window's size.
	ask := `n=0; while [ "$(stty size)" = "0 0" ] && [ $n -lt 200 ]; do n=$((n+1)); sleep 0.1; done; stty size; test -t 0 && echo a terminal; exit 3`
	command := strings.Join([]string{koboshi, "kubectl", "exec", "-it", "-n", ns, "host", "--", "/bin/sh", "-c", "'" + ask + "'"}, " ")
	cmd := exec.CommandContext(t.Context(), "script", "-qec", "stty cols 93 rows 41; "+command, filepath.Join(t.TempDir(), "typescript"))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig, "KUBECACHEDIR="+filepath.Join(p.dir, "cache"))
	// The input of the command stays open, because the command would otherwise end before
	// the answer arrives.
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = input.Close() }()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !bytes.Contains(out, []byte("41 93")) || !bytes.Contains(out, []byte("a terminal")) {
		t.Errorf("%v: %q", err, out)
	}
}

func TestAttachReadsWhatTheProgramWrites(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("echoes", "while read line; do echo got $line; done", "restartPolicy: Never")+`
    stdin: true
    stdinOnce: true
`)
	p.waitForPod(t, ns, "echoes", "Ready", ready)
	out, err := p.tryKubectl("hello\n", "attach", "-q", "-i", "-n", ns, "echoes")
	if err != nil || !strings.Contains(out, "got hello") {
		t.Errorf("attach: %q, %v", out, err)
	}
	p.waitForPod(t, ns, "echoes", "Succeeded", inPhase("Succeeded"))
}

func TestFilesAreCopiedToAProgramAndBack(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("tar is not installed")
	}
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("host", ":"+forever, "volumes: [{name: e, emptyDir: {}}]")+`
    volumeMounts: [{name: e, mountPath: /e}]
`)
	p.waitForPrograms(t, ns, 1)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "there"), "and back")
	p.kubectl(t, "cp", filepath.Join(dir, "there"), ns+"/host:/e/file")
	if got := p.exec(t, ns, "host", "cat /e/file"); got != "and back" {
		t.Errorf("the file holds %q", got)
	}
	p.kubectl(t, "cp", ns+"/host:/e/file", filepath.Join(dir, "back"))
	if got, err := os.ReadFile(filepath.Join(dir, "back")); err != nil || string(got) != "and back" {
		t.Errorf("the copy holds %q: %v", got, err)
	}
}

var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+)`)

func TestPortForwardLeadsToTheProgram(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, webPod+`
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: $NS}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`)
	p.waitForPrograms(t, ns, 1)
	p.waitForAnswer(t, ns, "web", ns+" from web\n")
	for target, port := range map[string]string{"pod/web": ":8080", "service/web": ":80"} {
		out := p.start(t, "port-forward", "-n", ns, target, port)
		var address string
		eventually(t, "port-forward to "+target, func(context.Context) error {
			match := forwarding.FindStringSubmatch(out.String())
			if match == nil {
				return errors.New(out.String())
			}
			address = match[1]
			return nil
		})
		for range 3 {
			mustAnswer(t, "http://"+address, ns+" from web\n")
		}
	}
}
