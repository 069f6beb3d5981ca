package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// Processes provides the answers of the processes that simulated Pods do not have.
type Processes interface {
	// Command returns the result of a command in a container, or false if there is no result for
	// the command.
	Command(c Container, argv []string) (Result, bool)
	// Ports returns the ports on which a Pod listens, each with the TCP address of the server to
	// which the port is forwarded.
	Ports(namespace, pod string) map[int32]string
}

// Container names a container of a simulated Pod.
type Container struct{ Namespace, Pod, Name string }

// Result is the result of a command.
type Result struct {
	Stdout, Stderr string
	ExitCode       int
}

// streams configures connections as a kubelet does.
var streams = streaming.DefaultConfig

// exec answers a request to execute a command.
func (k *Kubelet) exec(w http.ResponseWriter, r *http.Request) {
	c := Container{Namespace: r.PathValue("namespace"), Pod: r.PathValue("pod"), Name: r.PathValue("container")}
	argv := r.URL.Query()["command"]
	var result Result
	known := false
	if k.processes != nil {
		result, known = k.processes.Command(c, argv)
	}
	if !known {
		refuse(w, r, "execute a command in")
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, result, c.Pod, r.PathValue("uid"), c.Name, argv, options,
		streams.StreamIdleTimeout, streams.StreamCreationTimeout, streams.SupportedRemoteCommandProtocols)
}

// ExecInContainer writes the output of the command, and returns its exit code.
func (result Result) ExecInContainer(_ context.Context, _, _, _ string, argv []string, _ io.Reader, out, errs io.WriteCloser, tty bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	if tty { // a terminal has one stream
		errs = out
	}
	for _, one := range []struct {
		to   io.WriteCloser
		text string
	}{{out, result.Stdout}, {errs, result.Stderr}} {
		if one.text == "" || one.to == nil {
			continue
		}
		if _, err := io.WriteString(one.to, one.text); err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
	}
	if result.ExitCode != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("command '%s' exited with %d", strings.Join(argv, " "), result.ExitCode), Code: result.ExitCode}
	}
	return nil
}

// forward answers a request to forward ports. The ports are named later, inside the
// connection.
func (k *Kubelet) forward(w http.ResponseWriter, r *http.Request) {
	namespace, pod := r.PathValue("namespace"), r.PathValue("pod")
	var ports map[int32]string
	if k.processes != nil {
		ports = k.processes.Ports(namespace, pod)
	}
	if len(ports) == 0 {
		refuse(w, r, "forward a port to")
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, forwarder(ports), namespace+"/"+pod, r.PathValue("uid"), options,
		streams.StreamIdleTimeout, streams.StreamCreationTimeout, streams.SupportedPortForwardProtocols)
}

// forwarder maps the ports of a Pod to addresses.
type forwarder map[int32]string

// PortForward connects a client to the server whose address the port is mapped to.
func (f forwarder) PortForward(ctx context.Context, pod, _ string, port int32, client io.ReadWriteCloser) error {
	address, ok := f[port]
	if !ok {
		return fmt.Errorf("pod %s is simulated; nothing listens on its port %d", pod, port)
	}
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connecting to port %d: %w", port, err)
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(client, server)
	return errors.Join(err, client.Close())
}
