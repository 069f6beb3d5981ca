package cri

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
	utilexec "k8s.io/utils/exec"
)

// command returns a command for exec that runs args.
func (b *box) command(args ...string) []string {
	return append([]string{b.Runtime.config.Programs[0].Path, programVerb}, args...)
}

func TestExecSyncRunsInTheContainer(t *testing.T) {
	p := newPlane(t)
	config := withMounts(containerConfig("block"), &runtimeapi.Mount{ContainerPath: "/no/such", HostPath: p.volume("v", "file", "seen\n")})
	config.Envs = []*runtimeapi.KeyValue{{Key: "BOTH", Value: []byte("pod")}}
	b := p.pod().start(config)
	out, errs, err := p.ExecSync(t.Context(), b.id, b.command("cat", "/no/such/file", ";", "env", ";", "complain", "and this", ";", "who"), limit)
	if err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	for _, want := range []string{"seen\n", "BOTH=pod\n", " uid=65532 gid=65532 host=pod-a "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	if strings.Contains(string(out), "pid=1 ") || string(errs) != "and this" {
		t.Errorf("stdout %s, stderr %s", out, errs)
	}
}

func TestExecSyncTellsTheExitCode(t *testing.T) {
	b := newPlane(t).pod().start(containerConfig("block"))
	for name, test := range map[string]struct {
		argv []string
		code int
	}{
		"its own":        {b.command("complain", "because", ";", "exit", "4"), 4},
		"not there":      {[]string{"/no/such/program"}, 127},
		"not in PATH":    {[]string{"no-such-program"}, 127},
		"not executable": {[]string{"/etc/passwd"}, 126},
	} {
		_, _, err := b.ExecSync(t.Context(), b.id, test.argv, limit)
		var exit utilexec.ExitError
		if !errors.As(err, &exit) || exit.ExitStatus() != test.code {
			t.Errorf("%s: %v", name, err)
		}
		if name == "its own" && !strings.HasSuffix(err.Error(), "exited with 4: because") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExecSyncEndsAtItsTimeout(t *testing.T) {
	b := newPlane(t).pod().start(containerConfig("block"))
	before := time.Now()
	_, _, err := b.ExecSync(t.Context(), b.id, b.command("spawn", "block", ";", "block"), 300*time.Millisecond)
	if !errors.Is(err, remote.ErrCommandTimedOut) || time.Since(before) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(before), err)
	}
	b.eventually("only pid 1 is left", func() bool {
		stats, err := b.PodSandboxStats(t.Context(), b.pod.id)
		return err == nil && stats.GetLinux().GetProcess().GetProcessCount().GetValue() == 1
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := b.ExecSync(ctx, b.id, b.command("block"), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestExecMaySignalTheProgram(t *testing.T) {
	b := newPlane(t).pod().start(containerConfig("await", "SIGTERM"))
	b.says("ready")
	// When the program ends, the command may be killed before it can report
	// its exit code.
	_, errs, err := b.ExecSync(t.Context(), b.id, b.command("signal1"), limit)
	if len(errs) > 0 {
		t.Fatalf("%v: %s", err, errs)
	}
	if s := b.exited(); s.GetExitCode() != 0 {
		t.Errorf("exit code %d", s.GetExitCode())
	}
}

func TestExecSyncLimitsWhatItReturns(t *testing.T) {
	b := newPlane(t).pod().start(containerConfig("block"))
	out, _, err := b.ExecSync(t.Context(), b.id, []string{"head", "-c", "3000000", "/dev/zero"}, limit)
	if err != nil || len(out) != maxOutput {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

func TestExecInWhatIsNotRunningSaysSo(t *testing.T) {
	b := newPlane(t).pod().start(containerConfig("exit", "0"))
	b.exited()
	if _, _, err := b.ExecSync(t.Context(), b.id, b.command("who"), limit); err == nil || !strings.Contains(err.Error(), "container main is not running") {
		t.Error(err)
	}
}
