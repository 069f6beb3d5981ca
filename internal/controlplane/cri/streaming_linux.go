package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/koboshi-dev/koboshi/internal/freeport"
)

// listen prepares the server for exec, attach and port-forward. The server
// listens on loopback without TLS, which is safe, because each URL is valid
// only once and for one minute. Only the kubelet gets the URL, and the kubelet
// lets the API server authorize each request.
func (r *Runtime) listen() error {
	var err error
	if r.listener, err = freeport.Listen(0); err != nil {
		return fmt.Errorf("listening for exec, attach and port-forward: %w", err)
	}
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: r.listener.Addr().String()}
	if r.server, err = streaming.NewServer(config, streamer{r}); err != nil {
		return fmt.Errorf("preparing exec, attach and port-forward: %w", err)
	}
	return nil
}

// Exec returns a URL at which a client may run a command.
func (r *Runtime) Exec(_ context.Context, request *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	if _, err := r.live(request.GetContainerId()); err != nil {
		return nil, err
	}
	return r.server.GetExec(request)
}

// Attach returns a URL at which a client may connect to the program's streams.
func (r *Runtime) Attach(_ context.Context, request *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	if _, err := r.live(request.GetContainerId()); err != nil {
		return nil, err
	}
	return r.server.GetAttach(request)
}

// PortForward returns a URL at which a client may reach the Pod's ports.
func (r *Runtime) PortForward(_ context.Context, request *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	if _, err := r.address(request.GetPodSandboxId()); err != nil {
		return nil, err
	}
	return r.server.GetPortForward(request)
}

func (r *Runtime) address(sandboxID string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.sandbox(sandboxID)
	if err != nil {
		return "", err
	}
	if !s.ready {
		return "", errors.New("the Pod is not running")
	}
	return s.address.String(), nil
}

// A streamer performs the requests that clients send to the streaming server.
type streamer struct{ *Runtime }

// Exec runs a command. Streams that the client does not use are nil.
func (s streamer) Exec(ctx context.Context, id string, argv []string, in io.Reader, out, errs io.WriteCloser, tty bool, sizes <-chan remotecommand.TerminalSize) error {
	p, err := s.live(id)
	if err != nil {
		return err
	}
	if tty {
		return s.streamTerminal(ctx, p, argv, in, writer(out), sizes)
	}
	return s.stream(ctx, p, argv, in, writer(out), writer(errs))
}

// writer converts w, and returns a nil interface if w is nil.
func writer(w io.WriteCloser) io.Writer {
	if w == nil {
		return nil
	}
	return w
}

// Attach connects the client to the program's streams.
func (s streamer) Attach(ctx context.Context, id string, in io.Reader, out, errs io.WriteCloser, _ bool, sizes <-chan remotecommand.TerminalSize) error {
	s.mu.Lock()
	p, err := s.container(id)
	var streams *streams
	if err == nil {
		streams = p.streams
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if streams == nil {
		return fmt.Errorf("container %s is not running", p.config.GetMetadata().GetName())
	}
	if streams.terminal != nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go resize(ctx, streams.terminal, sizes)
	}
	streams.attach(ctx, in, writer(out), writer(errs), p.config.GetStdinOnce())
	return nil
}

// PortForward connects a client to a port on the address of the Pod.
func (s streamer) PortForward(ctx context.Context, sandboxID string, port int32, client io.ReadWriteCloser) error {
	address, err := s.address(sandboxID)
	if err != nil {
		return err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("connecting to port %d: %w", port, err)
	}
	defer func() { _ = conn.Close() }()
	received := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, client)
		_ = conn.(*net.TCPConn).CloseWrite()
		received <- err
	}()
	// The connection ends when the program closes it; the client does not have
	// to close its half first.
	_, err = io.Copy(client, conn)
	_ = client.Close()
	if err != nil {
		return fmt.Errorf("copying from port %d: %w", port, err)
	}
	return nil
}
