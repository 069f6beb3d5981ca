package scenario

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"al.essio.dev/pkg/shellescape"

	"github.com/koboshi-dev/koboshi/internal/check/home"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/freeport"
)

// Servers holds the running endpoints of a scenario.
type Servers struct {
	all []*Server
}

// Server is one running endpoint.
type Server struct {
	Name string
	// URL is the address of the server itself, not of the proxy.
	URL string

	cmd    *exec.Cmd // nil for a server that was already running
	argv   []string
	output *output.Tail
	ended  chan struct{} // closed when the process has ended
	err    error         // the result of Wait, valid once ended is closed
}

// StartEndpoints starts the endpoints that have a command, and waits until all endpoints
// answer, including those that were already running. If an endpoint does not answer,
// StartEndpoints stops the others. The commands have the home directory homeDir.
func StartEndpoints(ctx context.Context, endpoints []Endpoint, homeDir string) (*Servers, error) {
	running := &Servers{}
	for _, e := range endpoints {
		s, err := start(ctx, e, homeDir)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("endpoint %s: %w", e.Name, err), running.Stop())
		}
		running.all = append(running.all, s)
	}
	return running, nil
}

// URLs maps the name of each endpoint to its address.
func (s *Servers) URLs() map[string]string {
	urls := map[string]string{}
	for _, one := range s.all {
		urls[one.Name] = one.URL
	}
	return urls
}

// Failed returns an error if a server has exited on its own, which makes the current run
// invalid.
func (s *Servers) Failed() error {
	var all []error
	for _, one := range s.all {
		if one.cmd == nil {
			continue
		}
		select {
		case <-one.ended:
			all = append(all, fmt.Errorf("endpoint %s: %w", one.Name, one.death()))
		default:
		}
	}
	return errors.Join(all...)
}

// Stop stops all servers and their children.
func (s *Servers) Stop() error {
	var all []error
	for _, one := range s.all {
		if err := one.stop(); err != nil {
			all = append(all, fmt.Errorf("endpoint %s: stopping: %w", one.Name, err))
		}
	}
	s.all = nil
	return errors.Join(all...)
}

// attempts limits how many free ports are tried. More than one attempt may be needed,
// because another process can take a port before the server listens.
const attempts = 3

func start(ctx context.Context, e Endpoint, homeDir string) (*Server, error) {
	if len(e.Run) == 0 {
		s := &Server{Name: e.Name, URL: e.URL}
		return s, s.await(ctx)
	}
	var last error
	for range attempts {
		s, err := launch(e, homeDir)
		if err != nil {
			return nil, err
		}
		if last = s.await(ctx); last == nil {
			return s, nil
		}
		if err := s.stop(); err != nil || ctx.Err() != nil {
			return nil, errors.Join(last, err)
		}
	}
	return nil, last
}

func launch(e Endpoint, homeDir string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Name: e.Name, output: output.NewTail(mostTail), ended: make(chan struct{})}
	s.URL = strings.ReplaceAll(e.URL, portVariable, port)
	for _, part := range e.Run {
		s.argv = append(s.argv, strings.ReplaceAll(part, portVariable, port))
	}
	// The server must outlive the context in which it was started, and runs until stop is
	// called.
	s.cmd = command(context.Background(), e.Dir, s.argv)
	s.cmd.Env = append(home.Environment(homeDir), "PORT="+port)
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", shellescape.QuoteCommand(s.argv), err)
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

func freePort() (string, error) {
	l, err := freeport.Listen(0)
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return strconv.Itoa(port), l.Close()
}

// death returns an error that describes how the process ended. It may be called only after
// the process has ended.
func (s *Server) death() error {
	if s.err != nil {
		return fmt.Errorf("%s: ended: %w%s", shellescape.QuoteCommand(s.argv), s.err, indented(s.output))
	}
	return fmt.Errorf("%s: ended%s", shellescape.QuoteCommand(s.argv), indented(s.output))
}

// await waits until the server gives any answer or ends.
func (s *Server) await(ctx context.Context) error {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, withoutDeadline)
		defer cancel()
	}
	// This request does not verify the certificate, because it only checks that the server
	// answers. The controller itself must verify the certificate.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 2 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		err := ask(ctx, client, s.URL)
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return s.death()
		case <-ctx.Done():
			return fmt.Errorf("%s does not respond: %w%s", s.URL, err, indented(s.output))
		case <-time.After(pause):
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func (s *Server) stop() error {
	if s.cmd == nil {
		return nil
	}
	for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		// The process group can outlive its first process, so always signal the group.
		if err := syscall.Kill(-s.cmd.Process.Pid, how); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		select {
		case <-s.ended:
			// Also kill children that ignore SIGTERM.
			_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
			return nil
		case <-time.After(graceful):
		}
	}
	return fmt.Errorf("%s did not end", shellescape.QuoteCommand(s.argv))
}
