package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/devloop/instrument"
	"github.com/koboshi-dev/koboshi/internal/devloop/webhook"
	"github.com/koboshi-dev/koboshi/internal/serviceaccount"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const (
	// restartGrace is how long the manager may take to end before it is killed. A Pod gets
	// more time, but in the loop, a person waits for the next process.
	restartGrace = 10 * time.Second
	exitGrace    = 5 * time.Second
	// readyWithin limits the wait for a manager that serves no webhooks although it should,
	// or makes no requests.
	readyWithin = 30 * time.Second
	// watchesWithin is the time after the first request in which most programs watch something.
	watchesWithin = 2 * time.Second
	readyPoll     = 10 * time.Millisecond
	// tokenLife is the lifetime of a token. A token is of no use after its plane has ended.
	tokenLife = 365 * 24 * time.Hour
)

// child is one process of the manager.
type child struct {
	name     string
	process  *process.Process
	proxy    *apiproxy.Proxy
	output   *panicFirst
	lines    *trace.Lines         // records the output; nil if nothing is recorded
	reports  *instrument.Receiver // nil unless the manager is instrumented
	stopping atomic.Bool
	over     bool          // its end has been noticed; Session.mu guards it
	ended    chan struct{} // closed when everything about its end has been said
}

// Running implements devloop.Stages.
func (s *Session) Running() bool {
	s.mu.Lock()
	c := s.child
	s.mu.Unlock()
	return c != nil && !c.isOver()
}

func (c *child) isOver() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Restart implements devloop.Stages. Reviews wait from the moment at which the old process is
// asked to end, until the new one serves.
func (s *Session) Restart(ctx context.Context) error {
	if err := s.project.Complete(ctx, s.program); err != nil {
		return err
	}
	s.noteOnce(s.project)
	if err := s.pause(ctx); err != nil {
		return err
	}
	s.stopChild(restartGrace)
	c, err := s.startChild(ctx)
	if err == nil {
		err = s.ready(ctx, c)
	}
	if err != nil && !errors.Is(err, errEnded) { // or else the reason has been told
		s.listener.Refuse("the manager is not running: " + err.Error())
	}
	return err
}

// stopChild ends the manager, after it has answered the reviews that it has received.
func (s *Session) stopChild(grace time.Duration) {
	s.mu.Lock()
	c := s.child
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if c != nil {
		s.mu.Lock()
		c.stopping.Store(true) // from now on, serve does not resume
		s.mu.Unlock()
		s.listener.Pause(ctx)
		if s.o.Delve != nil {
			s.o.Delve.Terminate(c.process, grace)
		}
		c.process.Stop(grace)
		<-c.ended
	}
	s.listener.Pause(ctx) // after a crash, reviews have been refused
}

// startChild starts the manager behind a proxy of its own, with the permissions of its service
// account.
func (s *Session) startChild(ctx context.Context) (*child, error) {
	identity, err := s.identify(ctx)
	if err != nil {
		return nil, err
	}
	s.instances++
	c := &child{name: fmt.Sprintf("manager-%d", s.instances), output: newPanicFirst(s.o.Output), ended: make(chan struct{})}
	if s.o.Recording.Log != nil {
		c.lines = trace.NewLines(s.o.Recording.Log, c.name, "")
	}
	background := context.WithoutCancel(ctx)
	if c.proxy, err = apiproxy.Start(background, apiproxy.Config{Upstream: identity, Instance: c.name, Log: s.o.Recording.Log}); err != nil {
		return nil, err
	}
	if err = s.receive(c); err != nil {
		c.proxy.Stop()
		return nil, err
	}
	spec, err := s.spec(c)
	if err == nil {
		c.process, err = process.Start(background, spec)
	}
	if err != nil {
		c.proxy.Stop()
		c.reports.Close()
		return nil, err
	}
	s.record(c, trace.Process{What: "started", PID: c.process.PID()})
	s.mu.Lock()
	s.child = c
	s.mu.Unlock()
	go s.await(c)
	if s.o.Delve != nil {
		go s.o.Delve.Watch(c.process, func() {
			s.o.Observer.Note("the manager is stopped in the debugger; connect with: dlv connect " + s.o.Delve.Address)
		})
	}
	return c, nil
}

// identify returns the manager's connection: as its service account, or as the administrator if it
// has none. In a cluster that exists already, the manager uses the connection of the user.
func (s *Session) identify(ctx context.Context) (*rest.Config, error) {
	identity := rest.CopyConfig(s.admin)
	if s.plane == nil {
		identity.QPS = -1
		if identity.Proxy == nil { // as client-go does without a transport of its own
			identity.Proxy = http.ProxyFromEnvironment
		}
		return identity, nil
	}
	if account := s.project.Subject.Identity; account.Name != "" {
		client, err := kubernetes.NewForConfig(s.admin)
		if err != nil {
			return nil, err
		}
		identity = rest.AnonymousClientConfig(s.admin)
		if identity.BearerToken, _, err = serviceaccount.Token(ctx, client, account.Namespace, account.Name, tokenLife); err != nil {
			return nil, err
		}
	}
	identity.QPS = -1
	var err error
	identity.Transport, err = s.plane.InProcess(identity)
	return identity, err
}

// spec writes the files that the manager needs, and describes its process.
func (s *Session) spec(c *child) (process.Spec, error) {
	kubeconfig, err := c.proxy.Kubeconfig()
	if err != nil {
		return process.Spec{}, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return process.Spec{}, err
	}
	// JSON is valid YAML, and every language can parse it.
	if kubeconfig, err = yaml.YAMLToJSON(kubeconfig); err != nil {
		return process.Spec{}, err
	}
	path := filepath.Join(s.o.Dir, "manager.kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return process.Spec{}, err
	}
	root, certs := filepath.Join(s.o.Dir, "files"), filepath.Join(s.o.Dir, "certs")
	p := s.project.Subject.Expand(map[string]string{
		subject.Certs: certs, subject.Kubeconfig: path, subject.Root: root, subject.Address: s.address.String(),
		subject.PodUID: subject.NoPodUID,
	})
	if err := os.RemoveAll(root); err != nil {
		return process.Spec{}, err
	}
	if err := subject.WriteFiles(root, p.Files); err != nil {
		return process.Spec{}, err
	}
	if err := subject.WriteAccount(root, p.Files, config.BearerToken, config.CAData); err != nil {
		return process.Spec{}, err
	}
	if p.Webhook.Port > 0 {
		dir := cmp.Or(p.Webhook.CertDir, certs)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return process.Spec{}, err
		}
		if err := webhook.Files(s.ca, dir); err != nil {
			return process.Spec{}, err
		}
	}
	command := slices.Concat(p.Command, p.Webhook.Args)
	if s.o.Delve != nil {
		command = s.o.Delve.Command(command)
	}
	env := slices.Concat(outsideOfPods(os.Environ()), p.Env, []string{"KUBECONFIG=" + path})
	if c.reports != nil {
		env = append(env, c.reports.Env)
	}
	return process.Spec{Command: command, Dir: p.Dir, Env: env, Output: c.printed(), Address: s.address}, nil
}

// printed returns the writer for what the process prints.
func (c *child) printed() io.Writer {
	if c.lines == nil {
		return c.output
	}
	return io.MultiWriter(c.lines, c.output)
}

// outsideOfPods removes the variables with which a Pod finds its cluster. If koboshi runs in a
// Pod, the manager must not use the cluster of this Pod.
func outsideOfPods(env []string) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		return strings.HasPrefix(entry, "KUBERNETES_SERVICE_HOST=") || strings.HasPrefix(entry, "KUBERNETES_SERVICE_PORT=")
	})
}

// await waits until a process has ended, and reports the reason if nothing has asked it to end.
func (s *Session) await(c *child) {
	defer close(c.ended)
	<-c.process.Exited()
	c.proxy.Stop()
	code, printed := c.process.Exit()
	held := c.output.Close()
	c.reports.Close()
	if c.lines != nil {
		_ = c.lines.Close() // it never fails
	}
	if c.stopping.Load() {
		s.record(c, trace.Process{What: "killed", PID: c.process.PID(), ExitCode: code})
		s.o.Observer.Text(held)
		return
	}
	s.record(c, trace.Process{What: "exited", PID: c.process.PID(), ExitCode: code, Output: printed})
	reason := fmt.Sprintf("the manager ended with exit code %d", code)
	if s.o.Delve != nil {
		reason = "the manager ended in the debugger" // the exit code is that of Delve
	}
	if said := output.Reason(printed); said != "" {
		reason += ": " + said
	}
	s.mu.Lock()
	c.over = true
	s.listener.Refuse(reason + "; save a file to start it again")
	s.mu.Unlock()
	s.o.Observer.Note(reason)
	s.o.Observer.Text(held)
	s.o.Observer.Note("the manager starts again at the next edit")
}

func (s *Session) record(c *child, p trace.Process) {
	if s.o.Recording.Log != nil {
		s.o.Recording.Log.Record(trace.Entry{Instance: c.name, Process: &p})
	}
}

// localhost is the address of the manager on systems that cannot give it another one.
var localhost = netip.AddrFrom4([4]byte{127, 0, 0, 1})

var errEnded = errors.New("it ended before it was ready")

// ready waits until the manager serves its webhooks and watches something. It forwards reviews
// as soon as they can be answered, because the manager may need conversions to become ready.
func (s *Session) ready(ctx context.Context, c *child) error {
	port := s.project.Subject.Webhook.Port
	serves := port == 0
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	late := time.After(readyWithin)
	for {
		changed := c.proxy.Changed()
		serves = serves || s.serve(ctx, c, port)
		if serves && works(c.proxy.Activity()) {
			return nil
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-c.ended:
			return errEnded
		case <-late:
			s.o.Observer.Note(lateNote(serves, port))
			if !serves {
				go s.serveLate(c, port)
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// serve forwards reviews to a process if it serves them, and reports whether it does. A server that
// listens only on 127.0.0.1 stays at this address, so serve tries it, too.
func (s *Session) serve(ctx context.Context, c *child, port int) bool {
	for _, host := range []netip.Addr{c.process.Address(), localhost} {
		if !host.IsValid() {
			continue
		}
		address := netip.AddrPortFrom(host, uint16(port)).String() //nolint:gosec // package project checks the port
		if !s.listener.Ready(ctx, address) {
			continue
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !c.over && !c.stopping.Load() {
			s.listener.Resume(address)
		}
		return true
	}
	return false
}

// serveLate forwards reviews to a process as soon as it serves them.
func (s *Session) serveLate(c *child, port int) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for !s.serve(context.Background(), c, port) {
		select {
		case <-tick.C:
		case <-c.ended:
			return
		}
	}
}

// works reports whether a manager has begun its work.
func works(a apiproxy.Activity) bool {
	return !a.FirstRequest.IsZero() && (len(a.Streams) > 0 || time.Since(a.FirstRequest) > watchesWithin)
}

func lateNote(serves bool, port int) string {
	if serves {
		return fmt.Sprintf("the manager has made no request for %s", readyWithin)
	}
	return fmt.Sprintf("the manager has not served its webhooks on port %d for %s, so requests that need them wait; name another port with --webhook-port", port, readyWithin)
}
