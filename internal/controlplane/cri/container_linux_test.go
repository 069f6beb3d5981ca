package cri

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestExitCodesAndTimesAreTheProgramsOwn(t *testing.T) {
	p := newPlane(t).pod()
	for _, test := range []struct {
		args   []string
		code   int32
		reason string
	}{
		{[]string{"exit", "0"}, 0, "Completed"},
		{[]string{"exit", "3"}, 3, "Error"},
	} {
		before := time.Now().UnixNano()
		_, status := p.run(containerConfig(test.args...))
		if status.GetExitCode() != test.code || status.GetReason() != test.reason {
			t.Errorf("%v: exit code %d, reason %s", test.args, status.GetExitCode(), status.GetReason())
		}
		if s, f := status.GetStartedAt(), status.GetFinishedAt(); before > s || s > f || f > time.Now().UnixNano() {
			t.Errorf("%v: started %d, finished %d", test.args, s, f)
		}
	}
}

func TestProgramIsPid1AsTheUserOfThePod(t *testing.T) {
	p := newPlane(t).pod()
	out, _ := p.run(containerConfig("who"))
	if !strings.HasPrefix(out, "pid=1 proc=1 uid=65532 gid=65532 host=pod-a ") || !strings.Contains(out, "CapEff:0000000000000000") {
		t.Errorf("by default: %s", out)
	}
	config := containerConfig("who")
	config.Linux.SecurityContext.RunAsUser = &runtimeapi.Int64Value{Value: 1000}
	config.Linux.SecurityContext.NoNewPrivs = true
	out, status := p.run(config)
	if !strings.Contains(out, " uid=1000 gid=0 ") || !strings.Contains(out, "NoNewPrivs:1") {
		t.Errorf("runAsUser 1000: %s", out)
	}
	if user := status.GetUser().GetLinux(); user.GetUid() != 1000 || user.GetGid() != 0 {
		t.Errorf("status has %v", user)
	}
	config.Linux.SecurityContext.RunAsUser.Value = 0
	config.Linux.SecurityContext.RunAsGroup = &runtimeapi.Int64Value{Value: 7}
	config.Linux.SecurityContext.Capabilities = &runtimeapi.Capability{DropCapabilities: []string{"ALL"}, AddCapabilities: []string{"KILL"}}
	out, _ = p.run(config)
	if !strings.Contains(out, " uid=0 gid=7 ") || !strings.Contains(out, "CapEff:0000000000000020 ") {
		t.Errorf("root with KILL only: %s", out)
	}
}

func TestEnvironmentIsTheImagesThenThePodsAndNothingOfKoboshis(t *testing.T) {
	t.Setenv("SECRET_OF_MINE", "x")
	p := newPlane(t).pod()
	config := containerConfig("env")
	config.Envs = []*runtimeapi.KeyValue{{Key: "BOTH", Value: []byte("pod")}, {Key: "LINES", Value: []byte("a b")}}
	out, _ := p.run(config)
	for _, want := range []string{"OF=image\n", "BOTH=pod\n", "LINES=a b\n", "HOSTNAME=pod-a\n", "HOME=/\n", "PATH=/"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, not := range []string{"SECRET_OF_MINE", "BOTH=image"} {
		if strings.Contains(out, not) {
			t.Errorf("%s in\n%s", not, out)
		}
	}
}

func TestCommandAndArgsAreThoseOfKubernetes(t *testing.T) {
	p := newPlane(t)
	pod := p.pod()
	config := containerConfig()
	config.Args = nil
	if out, _ := pod.run(config); out != "the image's arguments" {
		t.Errorf("neither command nor args: %q", out)
	}
	base := p.config.Programs[0].Path[strings.LastIndexByte(p.config.Programs[0].Path, '/')+1:]
	for _, command := range []string{"/opt/no/such/program", "/" + base, base} {
		config := containerConfig("print", "found")
		config.Command = []string{command}
		if out, _ := pod.run(config); out != "found" {
			t.Errorf("command %s: %q", command, out)
		}
	}
	config = containerConfig()
	config.Image.Image, config.Args = "other:v7", []string{programVerb, "who"}
	if out, _ := pod.run(config); !strings.Contains(out, " uid=1234 gid=1234 ") || !strings.Contains(out, "dir="+p.volumes) {
		t.Errorf("user and workingDir of the program: %s", out)
	}
	config.WorkingDir = "/no/such/folder"
	if out, _ := pod.run(config); !strings.Contains(out, "dir=/no/such/folder ") {
		t.Errorf("workingDir of the Pod: %s", out)
	}
}

func TestProgramThatCannotStartSaysWhy(t *testing.T) {
	p := newPlane(t).pod()
	config := containerConfig()
	config.Command = []string{"no-such-program"}
	id, err := p.CreateContainer(t.Context(), p.id, config, p.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.StartContainer(t.Context(), id); err == nil || !strings.Contains(err.Error(), "executable file not found in $PATH") {
		t.Errorf("started with %v", err)
	}
	status := (&box{p, id}).status()
	if status.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED || status.GetExitCode() != 128 || status.GetReason() != "StartError" {
		t.Errorf("status %v", status)
	}
	config = containerConfig()
	config.Command = []string{"/etc/passwd"}
	if id, err = p.CreateContainer(t.Context(), p.id, config, p.config); err != nil {
		t.Fatal(err)
	}
	if err := p.StartContainer(t.Context(), id); err == nil || !strings.Contains(err.Error(), "exec /etc/passwd: permission denied") {
		t.Errorf("started with %v", err)
	}
}

func TestStopAsksThenKills(t *testing.T) {
	p := newPlane(t).pod()
	polite := containerConfig("await", "SIGTERM")
	b := p.start(polite)
	b.says("ready")
	if err := p.StopContainer(t.Context(), b.id, 30); err != nil {
		t.Fatal(err)
	}
	if s := b.status(); s.GetExitCode() != 0 || b.output() != "ready\ngot SIGTERM\n" {
		t.Errorf("polite: exit code %d, %q", s.GetExitCode(), b.output())
	}
	other := containerConfig("await", "SIGUSR1")
	other.StopSignal = runtimeapi.Signal_SIGNAL_SIGUSR1
	b = p.start(other)
	b.says("ready")
	if err := p.StopContainer(t.Context(), b.id, 30); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.output(), "got SIGUSR1") {
		t.Errorf("stopSignal SIGUSR1: %q", b.output())
	}
	b = p.start(containerConfig("ignore"))
	b.says("ready")
	before := time.Now()
	if err := p.StopContainer(t.Context(), b.id, 1); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(before); took < time.Second {
		t.Errorf("killed after %v, with a grace period of 1s", took)
	}
	if s := b.status(); s.GetExitCode() != 137 || s.GetReason() != "Error" {
		t.Errorf("stubborn: exit code %d, reason %s", s.GetExitCode(), s.GetReason())
	}
	if err := p.StopContainer(t.Context(), b.id, 1); err != nil {
		t.Errorf("stopping again: %v", err)
	}
	if err := p.StopContainer(t.Context(), "unknown", 1); err != nil {
		t.Errorf("stopping an unknown container: %v", err)
	}
}

func TestRealTimeSignalsAreCountedAsProgramsDo(t *testing.T) {
	for signal, want := range map[runtimeapi.Signal]int{
		runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT: 15, runtimeapi.Signal_SIGNAL_SIGQUIT: 3,
		runtimeapi.Signal_SIGNAL_SIGRTMIN: 34, runtimeapi.Signal_SIGNAL_SIGRTMINPLUS3: 37,
		runtimeapi.Signal_SIGNAL_SIGRTMAX: 64, runtimeapi.Signal_SIGNAL_SIGRTMAXMINUS2: 62,
	} {
		p := &process{config: &runtimeapi.ContainerConfig{StopSignal: signal}}
		if got := int(p.stopSignal()); got != want {
			t.Errorf("%s is %d, want %d", signal, got, want)
		}
	}
}

func TestAttemptsAndFiltersAreKept(t *testing.T) {
	p := newPlane(t)
	one, two := p.pod(), p.pod()
	first := one.start(containerConfig("exit", "1"))
	first.exited()
	again := containerConfig("block")
	again.Metadata.Attempt = 1
	again.Labels = map[string]string{"name": "main", "round": "2"}
	second := one.start(again)
	two.start(containerConfig("block"))
	if got := second.status().GetMetadata().GetAttempt(); got != 1 {
		t.Errorf("attempt %d", got)
	}
	running := &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}
	for name, test := range map[string]struct {
		filter *runtimeapi.ContainerFilter
		want   int
	}{
		"all":     {nil, 3},
		"id":      {&runtimeapi.ContainerFilter{Id: first.id}, 1},
		"pod":     {&runtimeapi.ContainerFilter{PodSandboxId: one.id}, 2},
		"running": {&runtimeapi.ContainerFilter{State: running}, 2},
		"label":   {&runtimeapi.ContainerFilter{LabelSelector: map[string]string{"round": "2"}}, 1},
		"both":    {&runtimeapi.ContainerFilter{PodSandboxId: one.id, State: running}, 1},
	} {
		got, err := p.ListContainers(t.Context(), test.filter)
		if err != nil || len(got) != test.want {
			t.Errorf("%s: %d containers, want %d, error %v", name, len(got), test.want, err)
		}
	}
	if err := p.RemoveContainer(t.Context(), second.id); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ContainerStatus(t.Context(), second.id, false); err == nil {
		t.Error("a removed container has a status")
	}
	if err := p.RemoveContainer(t.Context(), second.id); err != nil {
		t.Errorf("removing again: %v", err)
	}
}

func TestSandboxHasAnAddressUntilItIsStopped(t *testing.T) {
	p := newPlane(t)
	one, two := p.pod(), p.pod()
	if a, b := one.address(), two.address(); a == b || !strings.HasPrefix(a, "127.") || !strings.HasPrefix(b, "127.") {
		t.Errorf("addresses %s and %s", a, b)
	}
	host := p.pod(func(c *runtimeapi.PodSandboxConfig) {
		c.Linux.SecurityContext.NamespaceOptions.Network = runtimeapi.NamespaceMode_NODE
	})
	if got := host.address(); got != "127.0.0.1" {
		t.Errorf("hostNetwork has %s", got)
	}
	b := one.start(containerConfig("spawn", "block", ";", "block"))
	for range 2 {
		if err := p.StopPodSandbox(t.Context(), one.id); err != nil {
			t.Fatal(err)
		}
	}
	if s := b.status(); s.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED || s.GetExitCode() != 137 {
		t.Errorf("container of a stopped sandbox: %v", s)
	}
	ready := &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}
	list, err := p.ListPodSandbox(t.Context(), &runtimeapi.PodSandboxFilter{State: ready})
	if err != nil || len(list) != 2 {
		t.Errorf("%d ready sandboxes, error %v", len(list), err)
	}
	for range 2 {
		if err := p.RemovePodSandbox(t.Context(), one.id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.ContainerStatus(t.Context(), b.id, false); err == nil {
		t.Error("the container outlives its sandbox")
	}
}

func TestProgramInheritsNoOpenFile(t *testing.T) {
	const number = 123
	if err := unix.Dup3(0, number, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(number) }()
	b := newPlane(t).pod().start(containerConfig("file", strconv.Itoa(number), ";", "block"))
	b.says("bad file descriptor")
	out, _, err := b.ExecSync(t.Context(), b.id, b.command("file", strconv.Itoa(number)), limit)
	if err != nil || string(out) != "bad file descriptor\n" {
		t.Errorf("exec: %s, %v", out, err)
	}
}

func TestManyStartAndEndAtOnce(t *testing.T) {
	p := newPlane(t)
	pods := make([]*pod, 4)
	for i := range pods {
		pods[i] = p.pod()
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			pod := pods[i%len(pods)]
			id, err := pod.CreateContainer(t.Context(), pod.id, containerConfig("block"), pod.config)
			if err == nil {
				err = pod.StartContainer(t.Context(), id)
			}
			if err == nil {
				_, _, err = pod.ExecSync(t.Context(), id, []string{"true"}, limit)
			}
			if err == nil {
				err = pod.RemoveContainer(t.Context(), id)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := p.ListContainers(t.Context(), nil); err != nil || len(list) != 0 {
		t.Errorf("%d containers, %v", len(list), err)
	}
}
