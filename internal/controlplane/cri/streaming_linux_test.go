package cri

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"
)

// talk sends a request over SPDY, which the API server and the kubelet use for
// the requests of all clients.
func talk(t *testing.T, address string, options remotecommand.StreamOptions) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	client, err := remotecommand.NewSPDYExecutor(&rest.Config{}, http.MethodPost, u)
	if err != nil {
		t.Fatal(err)
	}
	return client.StreamWithContext(ctx, options)
}

func TestExecStreams(t *testing.T) {
	b := newPlane(t).pod().start(containerConfig("block"))
	answer, err := b.Exec(t.Context(), &runtimeapi.ExecRequest{
		ContainerId: b.id, Cmd: b.command("echo", ";", "complain", "hm", ";", "exit", "5"), Stdin: true, Stdout: true, Stderr: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(answer.GetUrl(), "http://127.0.0.1:") {
		t.Errorf("address %s", answer.GetUrl())
	}
	var out, errs bytes.Buffer
	err = talk(t, answer.GetUrl(), remotecommand.StreamOptions{
		Stdin: strings.NewReader("through\n"), Stdout: &out, Stderr: &errs,
	})
	var exit utilexec.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 5 || out.String() != "through\n" || errs.String() != "hm" {
		t.Errorf("%v, stdout %q, stderr %q", err, out.String(), errs.String())
	}
	if err := talk(t, answer.GetUrl(), remotecommand.StreamOptions{Stdout: &out}); err == nil {
		t.Error("the same address works twice")
	}

}

func TestExecEndsThoughTheClientKeepsItsInput(t *testing.T) {
	b := newPlane(t).pod().start(containerConfig("block"))
	answer, err := b.Exec(t.Context(), &runtimeapi.ExecRequest{ContainerId: b.id, Cmd: b.command("print", "done"), Stdin: true, Stdout: true})
	if err != nil {
		t.Fatal(err)
	}
	never, keep := io.Pipe()
	defer func() { _ = keep.Close() }()
	var out bytes.Buffer
	if err := talk(t, answer.GetUrl(), remotecommand.StreamOptions{Stdin: never, Stdout: &out}); err != nil || out.String() != "done" {
		t.Errorf("%v, %q", err, out.String())
	}
}

// window reports a terminal size once.
type window chan remotecommand.TerminalSize

func (w window) Next() *remotecommand.TerminalSize {
	if size, more := <-w; more {
		return &size
	}
	return nil
}

func TestExecHasATerminalOfTheClientsSize(t *testing.T) {
	b := newPlane(t).pod().start(containerConfig("block"))
	answer, err := b.Exec(t.Context(), &runtimeapi.ExecRequest{
		ContainerId: b.id, Cmd: b.command("say", ";", "sized", ";", "terminal"), Stdin: true, Stdout: true, Tty: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	sizes := make(window, 1)
	sizes <- remotecommand.TerminalSize{Width: 91, Height: 17}
	defer close(sizes)
	input, typing := io.Pipe()
	defer func() { _ = typing.Close() }()
	go func() { _, _ = io.WriteString(typing, "you\n") }()
	var out bytes.Buffer
	err = talk(t, answer.GetUrl(), remotecommand.StreamOptions{
		Stdin: input, Stdout: &out, Tty: true, TerminalSizeQueue: sizes,
	})
	// The terminal echoes the input, and its lines end with \r\n.
	if err != nil || !strings.Contains(out.String(), "you\r\nhello you\r\n") || !strings.Contains(out.String(), "91x17") ||
		!strings.Contains(out.String(), "on /dev/pts/0, ") {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestAttachTalksToTheProgram(t *testing.T) {
	config := containerConfig("say", ";", "complain", "and", ";", "echo")
	config.Stdin, config.StdinOnce = true, true
	b := newPlane(t).pod().start(config)
	answer, err := b.Attach(t.Context(), &runtimeapi.AttachRequest{ContainerId: b.id, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	// With stdinOnce, the program's input ends when the client's input ends.
	err = talk(t, answer.GetUrl(), remotecommand.StreamOptions{Stdin: strings.NewReader("you\n"), Stdout: &out, Stderr: &errs})
	if err != nil || out.String() != "hello you\n" || errs.String() != "and" {
		t.Errorf("%v, stdout %q, stderr %q", err, out.String(), errs.String())
	}
	if s := b.exited(); s.GetExitCode() != 0 {
		t.Errorf("exit code %d", s.GetExitCode())
	}
	if b.output() != "hello you\nand" && b.output() != "andhello you\n" {
		t.Errorf("the log has %q", b.output())
	}

}

func TestAttachToATerminal(t *testing.T) {
	config := containerConfig("say", ";", "size")
	config.Stdin, config.Tty = true, true
	b := newPlane(t).pod().start(config)
	answer, err := b.Attach(t.Context(), &runtimeapi.AttachRequest{ContainerId: b.id, Stdin: true, Stdout: true, Tty: true})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = talk(t, answer.GetUrl(), remotecommand.StreamOptions{Stdin: strings.NewReader("you\n"), Stdout: &out, Tty: true})
	if err != nil || !strings.Contains(out.String(), "hello you\r\n") {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestPortForwardReachesTheProgram(t *testing.T) {
	p := newPlane(t)
	pod, port := p.pod(), freePort(t)
	b := pod.start(containerConfig("listen", "tcp", fmt.Sprintf(":%d", port)))
	b.says("listening")
	answer, err := p.PortForward(t.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: pod.id, Port: []int32{int32(port)}})
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(answer.GetUrl())
	if err != nil {
		t.Fatal(err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, address),
		[]string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	forwarded := make(chan error, 1)
	go func() { forwarded <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-forwarded:
		t.Fatal(err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := greeting(t, "tcp", fmt.Sprintf("127.0.0.1:%d", ports[0].Local)); got != pod.config.GetHostname() {
			t.Errorf("%q answers", got)
		}
	}
	close(stop)
	if err := <-forwarded; err != nil {
		t.Error(err)
	}
}

func TestStreamingToWhatIsNotRunningIsRefused(t *testing.T) {
	p := newPlane(t)
	pod := p.pod()
	b := pod.start(containerConfig("exit", "0"))
	b.exited()
	if _, err := p.Exec(t.Context(), &runtimeapi.ExecRequest{ContainerId: b.id, Cmd: []string{"x"}, Stdout: true}); err == nil {
		t.Error("exec")
	}
	if _, err := p.Attach(t.Context(), &runtimeapi.AttachRequest{ContainerId: b.id, Stdout: true}); err == nil {
		t.Error("attach")
	}
	if err := p.StopPodSandbox(t.Context(), pod.id); err != nil {
		t.Fatal(err)
	}
	if _, err := p.PortForward(t.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: pod.id}); err == nil {
		t.Error("port-forward")
	}
}
