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

	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/freeport"
)

// Servers are the endpoints of a scenario, running.
type Servers struct {
	all []*Server
}

// Server is one endpoint, running.
type Server struct {
	Name string
	// URL is where it answers, without the proxy.
	URL string

	cmd    *exec.Cmd // nil if it was there already
	argv   []string
	output *output.Tail
	ended  chan struct{} // closed when the process has ended
	err    error         // how, once it has
}

// StartEndpoints starts the endpoints that say how, and waits until each answers;
// those that are there already have to answer too. If one does not, the others
// are stopped again.
func StartEndpoints(ctx context.Context, endpoints []Endpoint) (*Servers, error) {
	running := &Servers{}
	for _, e := range endpoints {
		s, err := start(ctx, e)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("endpoint %s: %w", e.Name, err), running.Stop())
		}
		running.all = append(running.all, s)
	}
	return running, nil
}

// URLs has for each endpoint's name where it answers.
func (s *Servers) URLs() map[string]string {
	urls := map[string]string{}
	for _, one := range s.all {
		urls[one.Name] = one.URL
	}
	return urls
}

// Failed says which of them has ended by itself: then no run with it counts.
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

// Stop stops them all, with what they have started themselves.
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

// attempts is how often a port is looked for: between looking and listening
// somebody else can take it.
const attempts = 3

func start(ctx context.Context, e Endpoint) (*Server, error) {
	if len(e.Run) == 0 {
		s := &Server{Name: e.Name, URL: e.URL}
		return s, s.await(ctx)
	}
	var last error
	for range attempts {
		s, err := launch(e)
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

func launch(e Endpoint) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Name: e.Name, output: output.NewTail(mostTail), ended: make(chan struct{})}
	s.URL = strings.ReplaceAll(e.URL, portVariable, port)
	for _, part := range e.Run {
		s.argv = append(s.argv, strings.ReplaceAll(part, portVariable, port))
	}
	// It lives until it is stopped, and not until the context of its start ends.
	s.cmd = command(context.Background(), e.Dir, s.argv)
	s.cmd.Env = append(environment(), "PORT="+port)
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", quoteCommand(s.argv), err)
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

// death says how the process ended. It is called once it has.
func (s *Server) death() error {
	if s.err != nil {
		return fmt.Errorf("%s: ended: %w%s", quoteCommand(s.argv), s.err, indented(s.output))
	}
	return fmt.Errorf("%s: ended%s", quoteCommand(s.argv), indented(s.output))
}

// await waits until the server answers, whatever it is, or has ended.
func (s *Server) await(ctx context.Context) error {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, withoutDeadline)
		defer cancel()
	}
	// The certificate is the controller's business: here it is only asked whether
	// somebody is there.
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
			return fmt.Errorf("%s does not answer: %w%s", s.URL, err, indented(s.output))
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
		// The group can outlive the process that was its first: it is told to end
		// in either case.
		if err := syscall.Kill(-s.cmd.Process.Pid, how); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		select {
		case <-s.ended:
			// Children that ignore SIGTERM are killed as well.
			_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
			return nil
		case <-time.After(graceful):
		}
	}
	return fmt.Errorf("%s does not end", quoteCommand(s.argv))
}
