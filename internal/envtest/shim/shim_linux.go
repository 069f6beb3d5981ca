package shim

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/internal/memory"
)

// Address returns the address of the host whose etcd listens on the port. An abstract
// socket leaves nothing behind and belongs to one network namespace, like the port.
// SameUser decides which processes may use the socket.
func Address(port int) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("@koboshi-envtest-%d-%d", os.Getuid(), port)}
}

// SameUser reports whether the process at the other end of the connection runs as this
// user.
func SameUser(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	same := false
	err = raw.Control(func(fd uintptr) {
		peer, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		same = err == nil && int(peer.Uid) == os.Getuid()
	})
	return err == nil && same
}

// run does the work of a shim and exits; it returns only if this process must be the server itself.
func run(name string) {
	if IsOrphaned() {
		abandon(name)
	}
	conn, host, err := reach(name)
	if err != nil || conn == nil {
		refuseDeadEtcd(name)
		return
	}
	lines, accepted := ask(conn, name)
	if !accepted {
		_ = conn.Close()
		return
	}
	tell := func() { _, _ = conn.Write([]byte(Stop + "\n")) }
	stopped := make(chan os.Signal, 1)
	go func() {
		signals := make(chan os.Signal, 2)
		signal.Notify(signals, ending()...)
		stopped <- <-signals
		tell()
		<-signals
		os.Exit(exitError)
	}()
	go func() {
		<-Orphaned()
		tell()
	}()
	go giveBack()
	code := exitCode(lines)
	if IsOrphaned() {
		end(host)
		abandon(name)
	}
	reap(host)
	select {
	case by := <-stopped:
		startTidying(name)
		if name == Etcd {
			endBy(by.(syscall.Signal))
		}
	default:
	}
	os.Exit(code)
}

// abandon ends a process whose suite has gone.
func abandon(name string) {
	RemoveLeftover(name)
	os.Exit(exitError)
}

// refuseDeadEtcd ends a kube-apiserver if envtest started it and its etcd is gone. envtest
// starts the server only after etcd has answered, so etcd has ended since then, usually
// because the suite was killed.
func refuseDeadEtcd(name string) {
	etcd := Flag(os.Args[1:], "etcd-servers")
	if name != APIServer || leftover(name, os.Args[1:]) == "" || Port(etcd) == 0 {
		return
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(etcd, "http://"), ",")
	conn, err := net.DialTimeout("tcp", strings.TrimRight(first, "/"), time.Second)
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return
	}
	select {
	case <-Orphaned():
		abandon(name)
	case <-time.After(reapTimeout):
	}
	_, _ = fmt.Fprintf(os.Stderr, "koboshi: etcd has exited: %v\n", err)
	os.Exit(exitError)
}

// ending lists the signals that end a server, except those that nohup ignores.
func ending() []os.Signal {
	all := []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// endBy ends the process with the signal, as upstream's etcd does after it has stopped
// (pkg/osutil).
func endBy(s syscall.Signal) {
	signal.Reset(s)
	_ = syscall.Kill(os.Getpid(), s)
	<-time.After(reapTimeout) // the signal ends the process before this returns
}

// root identifies the file system of this process. The containers of one Pod share the
// network, and therefore the sockets, but not the files.
func root() string {
	mounts, _ := os.Readlink("/proc/self/ns/mnt")
	var slash syscall.Stat_t
	_ = syscall.Stat("/", &slash)
	return fmt.Sprintf("%s %d %d", mounts, slash.Dev, slash.Ino)
}

// giveBack returns memory to the operating system twice: immediately, and again when the
// shim has finished its start.
func giveBack() {
	memory.GiveBackPages()
	<-time.After(startOver)
	memory.GiveBackPages()
}

// startOver is the age by which a shim has finished its start.
const startOver = time.Second

// reach connects to a host: etcd starts a new host, and kube-apiserver finds the host of
// its etcd.
func reach(name string) (*net.UnixConn, *os.Process, error) {
	if name == Etcd {
		return spawn()
	}
	port := Port(Flag(os.Args[1:], "etcd-servers"))
	if port == 0 {
		return nil, nil, nil
	}
	conn, err := net.DialUnix("unix", nil, Address(port))
	if err == nil && !SameUser(conn) {
		_ = conn.Close()
		return nil, nil, nil
	}
	return conn, nil, err
}

// spawn starts a host, which ends when no shim is connected. The host has a separate
// process group, because the shim already forwards the signals that reach its own group.
func spawn() (*net.UnixConn, *os.Process, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "shim"), os.NewFile(uintptr(pair[1]), "host")
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	host, err := os.StartProcess("/proc/self/exe", os.Args[:1], &os.ProcAttr{
		Env:   append(os.Environ(), HostVariable+"="+strconv.Itoa(HostFile)),
		Files: []*os.File{nil, os.Stdout, os.Stderr, HostFile: theirs},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return nil, nil, err
	}
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, err
	}
	return conn.(*net.UnixConn), host, nil
}

// reap waits for the end of a host that has closed the connection, so that the host does
// not remain as a zombie on systems where nothing reaps orphans. A host that still runs
// an API server does not end yet, so the wait is limited.
func reap(host *os.Process) {
	if host == nil {
		return
	}
	gone := make(chan struct{})
	go func() {
		_, _ = host.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(reapTimeout):
	}
}

// end waits until the host has ended, so that the host cannot write into a folder that is
// being removed. The servers of the host notice that their suite has ended, and stop by
// themselves.
func end(host *os.Process) {
	if host == nil {
		return
	}
	kill := time.AfterFunc(endTimeout, func() { _ = host.Kill() })
	defer kill.Stop()
	_, _ = host.Wait()
}

// ask sends the request, with the standard output and error, and returns the reading side of the
// connection.
func ask(conn *net.UnixConn, name string) (lines *bufio.Reader, accepted bool) {
	line, err := request(name)
	if err != nil {
		return nil, false
	}
	streams := syscall.UnixRights(int(os.Stdout.Fd()), int(os.Stderr.Fd()))
	// The files are sent with the first byte, because the entire request may not fit into
	// one message.
	if _, _, err := conn.WriteMsgUnix(line[:1], streams, nil); err != nil {
		return nil, false
	}
	if _, err := conn.Write(line[1:]); err != nil {
		return nil, false
	}
	lines = bufio.NewReader(conn)
	answer, err := lines.ReadString('\n')
	return lines, err == nil && strings.TrimSpace(answer) == Accepted
}

const (
	// reapTimeout is more time than a process needs to end once it has closed its files.
	reapTimeout = 200 * time.Millisecond
	// endTimeout is more time than servers need to stop on a busy machine.
	endTimeout = 5 * time.Second
)
