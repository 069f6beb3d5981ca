package envtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/koboshi-dev/koboshi/internal/controlplane/apiserver"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage/command"
	"github.com/koboshi-dev/koboshi/internal/envtest/shim"
	"github.com/koboshi-dev/koboshi/internal/memory"
)

// A host runs the servers that its shims stand for. A host ends when the last server has ended.
type host struct {
	first     shim.Request // the process has the environment and folder of this request
	inherited []*os.File   // the original standard output and error, which belong to etcd

	mu      sync.Mutex
	running int
	spent   bool // an API server was started; upstream's globals allow only one per process
}

// A client is the host's connection to a shim, which waits for its server to end.
type client struct {
	*net.UnixConn
	lines          *bufio.Reader
	request        shim.Request
	stdout, stderr *os.File
}

// Host serves the shim that started this process for etcd, and the shim of the API server
// that uses this etcd. The process ends when both servers have ended.
func Host() int {
	file, err := strconv.Atoi(os.Getenv(shim.HostVariable))
	if err != nil {
		return failed(fmt.Errorf("%s: %w", shim.HostVariable, err))
	}
	if err := os.Unsetenv(shim.HostVariable); err != nil {
		return failed(err)
	}
	inherited := os.NewFile(uintptr(file), "shim")
	conn, err := net.FileConn(inherited)
	_ = inherited.Close()
	if err != nil {
		return failed(err)
	}
	c, err := receive(conn.(*net.UnixConn))
	if err != nil {
		return failed(err)
	}
	memory.Starting()
	h := &host{first: c.request, inherited: []*os.File{os.Stdout, os.Stderr}}
	h.serveEtcd(c)
	return exitOK
}

func failed(err error) int {
	_, _ = fmt.Fprintf(os.Stderr, "koboshi: cannot run etcd and kube-apiserver for envtest: %v\n", err)
	return exitError
}

// serveEtcd runs etcd until its shim requests a stop or ends.
func (h *host) serveEtcd(c *client) {
	c.say(shim.Accepted)
	etcd, code := command.Parse(c.request.Args, c.stderr)
	if etcd == nil {
		c.exit(code)
		return
	}
	if port := shim.Port(etcd.URLs()[0]); port != 0 {
		if l, err := net.ListenUnix("unix", shim.Address(port)); err == nil {
			go h.admit(l, etcd, etcd.Fresh())
		}
	}
	h.begin()
	ctx, cancel := c.untilStopped()
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- etcd.Run(ctx) }()
	select {
	case code = <-ended:
	case <-ctx.Done():
		if h.alone() {
			// The server ends with this process, and the shim waits for the end of the
			// process.
			c.say(shim.Exit + " " + strconv.Itoa(exitOK))
			return
		}
		code = <-ended
	}
	c.exit(code, h.inherited...)
	h.end()
}

// admit serves shims that request an API server for this etcd.
func (h *host) admit(l *net.UnixListener, etcd *command.Command, fresh bool) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		go func() {
			if !shim.SameUser(conn) {
				_ = conn.Close()
				return
			}
			c, err := receive(conn)
			if err != nil {
				_ = conn.Close()
				return
			}
			if !h.fits(c.request, etcd.URLs()) {
				c.refuse()
				return
			}
			c.say(shim.Accepted)
			h.serveAPIServer(c, etcd, fresh)
		}()
	}
}

// fits reports whether the requested server can run here exactly as it would in a separate
// process. The server must be an API server whose etcd is at one of the URLs in etcd.
func (h *host) fits(r shim.Request, etcd []string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.spent, r.Name != shim.APIServer,
		!slices.Contains(etcd, strings.TrimRight(shim.Flag(r.Args, "etcd-servers"), "/")),
		r.Dir != h.first.Dir, r.Root != h.first.Root,
		!slices.Equal(relevant(r.Env), relevant(h.first.Env)):
		return false
	}
	h.spent = true
	h.running++
	return true
}

// relevant returns a sorted environment without the variable _, to which a shell assigns a
// new value for each command.
func relevant(env []string) []string {
	kept := slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "_=")
	})
	slices.Sort(kept)
	return kept
}

func (h *host) serveAPIServer(c *client, etcd *command.Command, fresh bool) {
	ctx, cancel := c.untilStopped()
	defer cancel()
	// etcd's log has its own copies of os.Stdout and os.Stderr. From here on, os.Stdout and
	// os.Stderr belong to the API server.
	os.Stdout, os.Stderr = c.stdout, c.stderr
	c.exit(runAPIServer(ctx, c.request.Args, fresh, &apiserver.Shortcut{
		Endpoint: shim.Flag(c.request.Args, "etcd-servers"),
		Take:     etcd.Shortcut,
	}))
	h.end()
}

func (h *host) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running++
}

// alone reports whether no other server is running. If none is running, alone also prevents
// other servers from starting.
func (h *host) alone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running > 1 {
		return false
	}
	h.spent = true
	return true
}

// end records that a server has ended. If this was the last server, the process ends; otherwise,
// end blocks forever.
func (h *host) end() {
	h.mu.Lock()
	h.running--
	last := h.running == 0
	h.mu.Unlock()
	if last {
		os.Exit(exitOK)
	}
	select {} // another server is still running
}

// maxFiles is the number of open files in a request: stdout and stderr.
const maxFiles = 2

func receive(conn *net.UnixConn) (*client, error) {
	var first [1]byte
	rights := make([]byte, syscall.CmsgSpace(maxFiles*4))
	_, n, _, _, err := conn.ReadMsgUnix(first[:], rights)
	if err != nil {
		return nil, err
	}
	files, err := openFiles(rights[:n])
	if err != nil {
		return nil, err
	}
	c := &client{UnixConn: conn, lines: bufio.NewReader(conn), stdout: files[0], stderr: files[1]}
	rest, err := c.lines.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	return c, json.Unmarshal(append(first[:], rest...), &c.request)
}

func openFiles(rights []byte) ([]*os.File, error) {
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := syscall.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "stream"))
		}
	}
	if len(files) != maxFiles {
		return nil, errors.New("the request must contain two open files, stdout and stderr")
	}
	return files, nil
}

func (c *client) say(line string) { _, _ = c.Write([]byte(line + "\n")) }

// refuse makes the shim become the server itself, and closes the host's copies of the
// shim's files.
func (c *client) refuse() {
	_, _ = c.stdout.Close(), c.stderr.Close()
	c.say(shim.Refused)
	_ = c.Close()
}

// exit sends the shim its exit code. A reader of the server's output must see the end of
// the output although this process continues, so exit replaces the files with /dev/null.
func (c *client) exit(code int, inherited ...*os.File) {
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		for _, f := range append(inherited, c.stdout, c.stderr) {
			_ = syscall.Dup3(int(null.Fd()), int(f.Fd()), syscall.O_CLOEXEC)
		}
		_ = null.Close()
	}
	c.say(shim.Exit + " " + strconv.Itoa(code))
	_ = c.Close()
}

// untilStopped returns a context that ends when the shim requests a stop or is gone.
func (c *client) untilStopped() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		for {
			line, err := c.lines.ReadString('\n')
			if err != nil || strings.TrimSpace(line) == shim.Stop {
				return
			}
		}
	}()
	return ctx, cancel
}
