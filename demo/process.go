package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	stateDir = ".demo"
	rootUser = "demo-user"

	pollInterval = 50 * time.Millisecond
	stopTimeout  = 10 * time.Second
)

// demo holds the processes that the demo has started, and their addresses.
type demo struct {
	dir      string // absolute path of the state
	binary   string // path of the koboshi program
	rootKey  string // the only key of the S3 server, which is the store
	endpoint string // the URL of the S3 server
	store    *process

	// notifyURL is the address for notifications to the operator, and notifyToken is the
	// token that notifications must contain.
	notifyURL, notifyToken string

	siteURL string // where the handbook is served

	processes []*process
}

type process struct {
	name   string
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
}

// newDemo prepares a demo whose state is in a folder.
func newDemo(state string) (*demo, error) {
	dir, err := filepath.Abs(state)
	if err != nil {
		return nil, err
	}
	binary, err := filepath.Abs("bin/koboshi")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(binary); err != nil {
		return nil, errors.New("bin/koboshi is not built; run make demo or make demo-operators")
	}
	if err := clearState(dir); err != nil {
		return nil, err
	}
	return &demo{dir: dir, binary: binary}, os.MkdirAll(dir, 0o700)
}

// clearState removes the state of the previous demo, unless that demo is still running.
func clearState(dir string) error {
	lock, err := os.OpenFile(filepath.Join(dir, "plane", "lock"), os.O_RDWR, 0)
	if err == nil {
		defer func() { _ = lock.Close() }()
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			return fmt.Errorf("another demo is running in %s; stop it first", dir)
		}
	}
	return os.RemoveAll(dir)
}

func (d *demo) path(elem ...string) string {
	return filepath.Join(append([]string{d.dir}, elem...)...)
}

// start runs a program until stop is called. Standard output goes to out, or to the log
// file if out is nil.
func (d *demo) start(name string, env []string, out io.Writer, path string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(path, args...), log: d.path(name + ".log"), exited: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if out != nil {
		p.cmd.Stdout = out
	}
	// The program gets a separate process group, because Ctrl-C should reach only the
	// demo, which stops its programs in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() { _ = p.cmd.Wait(); close(p.exited) }()
	d.processes = append(d.processes, p)
	return p, nil
}

// await waits for a program's ready file.
func (d *demo) await(ctx context.Context, p *process, file string) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	began := time.Now()
	for {
		if _, err := os.Stat(file); err == nil {
			progressDone()
			return nil
		}
		progress(fmt.Sprintf("starting %s: %.1f s", p.name, time.Since(began).Seconds()))
		select {
		case <-time.After(pollInterval):
		case <-p.exited:
			return fmt.Errorf("%s ended: %s", p.name, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %v: %s", p.name, stepTimeout, p.tail())
		}
	}
}

// stop ends one program and waits until it is gone.
func (d *demo) stop(p *process) error {
	d.processes = slices.DeleteFunc(d.processes, func(q *process) bool { return p == q })
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		if !p.cmd.ProcessState.Success() {
			return fmt.Errorf("%s ended with %v: %s", p.name, p.cmd.ProcessState, p.tail())
		}
		return nil
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.exited
		return fmt.Errorf("%s did not stop after SIGTERM", p.name)
	}
}

// ended returns an error for each program that ended by itself.
func (d *demo) ended() (err error) {
	for _, p := range d.processes {
		select {
		case <-p.exited:
			err = errors.Join(err, fmt.Errorf("%s has ended: %s", p.name, p.tail()))
		default:
		}
	}
	return err
}

// stopAll ends the running programs, in reverse order of their start.
func (d *demo) stopAll() (err error) {
	for len(d.processes) > 0 {
		err = errors.Join(err, d.stop(d.processes[len(d.processes)-1]))
	}
	return err
}

// tail returns the end of a program's log, for an error.
func (p *process) tail() string {
	data, _ := os.ReadFile(p.log)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return fmt.Sprintf("%s (log: %s)", strings.Join(lines[max(0, len(lines)-3):], "\n"), p.log)
}

// startStore runs the S3 server and waits until it is ready. The keys are passed in the
// server's environment, which other users cannot read.
func (d *demo) startStore(ctx context.Context, listen string) (err error) {
	show("s3server --listen " + listen + " --bucket " + observedBucket)
	ready := d.path("store-ready")
	_ = os.Remove(ready)
	env := []string{"ROOT_ACCESS_KEY=" + rootUser, "ROOT_SECRET_KEY=" + d.rootKey}
	d.store, err = d.start("s3server", env, nil, filepath.Join(operatorDir, "bin", "s3server"),
		"--dir", d.path("store"), "--listen", listen, "--bucket", observedBucket, "--ready-file", ready, "--die-with-parent")
	if err != nil {
		return err
	}
	if err := d.await(ctx, d.store, ready); err != nil {
		return err
	}
	endpoint, err := os.ReadFile(ready)
	d.endpoint = strings.TrimSpace(string(endpoint))
	return err
}

func (d *demo) storeAddress() string { return strings.TrimPrefix(d.endpoint, "http://") }

// kubectl shows a command and its output; the command must succeed.
func (d *demo) kubectl(ctx context.Context, args ...string) error {
	return d.kubectlWithInput(ctx, "", args...)
}

func (d *demo) kubectlWithInput(ctx context.Context, input string, args ...string) error {
	show("kubectl " + strings.Join(args, " "))
	out, err := d.ask(ctx, input, args...)
	fmt.Print(indent(out))
	if err != nil {
		return fmt.Errorf("kubectl %s: %w", args[0], err)
	}
	return nil
}

// ask runs kubectl without showing it, and returns its output.
func (d *demo) ask(ctx context.Context, input string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout+stopTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.binary, append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.path("plane", "kubeconfig"), "KUBECACHEDIR="+d.path("cache"))
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// pods returns the names of the Deployment's running Pods that are not being deleted, in
// order.
func (d *demo) pods(ctx context.Context) ([]string, error) {
	out, err := d.ask(ctx, "", "get", "pods", "--selector=app=nginx", "--field-selector=status.phase=Running",
		"-o", `go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}`)
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w: %s", err, out)
	}
	return strings.Fields(out), nil
}

// expectRunning waits until exactly want Pods of the Deployment are running.
func (d *demo) expectRunning(ctx context.Context, want int) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	for {
		pods, err := d.pods(ctx)
		if err == nil && len(pods) == want {
			return nil
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return fmt.Errorf("%d pods are running after %v, but there should be %d", len(pods), stepTimeout, want)
		}
	}
}
