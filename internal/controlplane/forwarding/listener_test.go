package forwarding

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const within = 5 * time.Minute

// program listens like a Pod and answers each connection with name.
func program(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = io.WriteString(c, name+"\n")
				_, _ = io.Copy(c, c) // echo until the client closes
			}()
		}
	}()
	return l.Addr().String()
}

// vacant returns an address at which no process listens, and reserves it until the test ends: a
// socket is bound to it but does not listen. The kernel therefore never assigns the port of this
// address automatically, but a listener with SO_REUSEADDR, which Go sets, can be bound to the
// address.
func vacant(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(address.(*unix.SockaddrInet4).Port))
}

// serving returns a listener that serves until the test ends or stop is called.
func serving(t *testing.T, targets ...string) (l *listener, stop func()) {
	t.Helper()
	l, err := listen(0, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l.targets.Store(&targets)
	ctx, cancel := context.WithCancel(context.Background())
	var connections sync.WaitGroup
	connections.Go(func() { l.serve(ctx, &connections) })
	stop = sync.OnceFunc(func() {
		cancel()
		_ = l.Close()
		connections.Wait()
	})
	t.Cleanup(stop)
	return l, stop
}

func connect(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp4", address, within)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(within))
	return c.(*net.TCPConn)
}

// line reads the program's greeting, or the next line that it echoes.
func line(t *testing.T, c net.Conn) string {
	t.Helper()
	var b strings.Builder
	for one := make([]byte, 1); ; {
		if _, err := io.ReadFull(c, one); err != nil {
			t.Fatalf("after %q: %v", b.String(), err)
		}
		if one[0] == '\n' {
			return b.String()
		}
		b.WriteByte(one[0])
	}
}

// ended waits for the end of the connection, which may be a reset.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, c)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("the connection did not end")
	}
}

// refused checks that a connection fails, either immediately or later.
func refused(t *testing.T, address string) {
	t.Helper()
	c, err := net.DialTimeout("tcp4", address, within)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(within))
	ended(t, c)
}

func TestConnectionsAreSharedAmongThePods(t *testing.T) {
	l, _ := serving(t, program(t, "a"), program(t, "b"), program(t, "c"))
	seen := map[string]int{}
	for range 9 {
		seen[line(t, connect(t, l.Addr().String()))]++
	}
	if seen["a"] != 3 || seen["b"] != 3 || seen["c"] != 3 {
		t.Errorf("connections %v, want 3 each", seen)
	}
}

func TestPodThatDoesNotAnswerIsPassedOver(t *testing.T) {
	l, _ := serving(t, vacant(t), program(t, "a"), vacant(t))
	for range 6 {
		if got := line(t, connect(t, l.Addr().String())); got != "a" {
			t.Errorf("connected to %q", got)
		}
	}
}

func TestChangedTargetsCountForNewConnectionsOnly(t *testing.T) {
	l, _ := serving(t, program(t, "a"))
	before := connect(t, l.Addr().String())
	if got := line(t, before); got != "a" {
		t.Fatalf("connected to %q", got)
	}
	l.targets.Store(&[]string{program(t, "b")})
	if got := line(t, connect(t, l.Addr().String())); got != "b" {
		t.Errorf("a new connection went to %q", got)
	}
	_, _ = io.WriteString(before, "still here\n")
	if got := line(t, before); got != "still here" {
		t.Errorf("the old connection answered %q", got)
	}
}

func TestClosedListenerKeepsItsConnections(t *testing.T) {
	l, _ := serving(t, program(t, "a"))
	c := connect(t, l.Addr().String())
	line(t, c)
	_ = l.Close()
	if _, err := net.DialTimeout("tcp4", l.Addr().String(), within); err == nil {
		t.Error("the closed listener accepts")
	}
	_, _ = io.WriteString(c, "still here\n")
	if got := line(t, c); got != "still here" {
		t.Errorf("the old connection answered %q", got)
	}
}

func TestWithoutAPodConnectionsEndAtOnce(t *testing.T) {
	for _, targets := range [][]string{nil, {vacant(t)}} {
		l, _ := serving(t, targets...)
		refused(t, l.Addr().String())
	}
}

func TestEndOfTheRequestDoesNotEndTheAnswer(t *testing.T) {
	l, _ := serving(t, program(t, "a"))
	c := connect(t, l.Addr().String())
	request := strings.Repeat("0123456789", 100_000)
	go func() {
		_, _ = io.WriteString(c, request)
		_ = c.CloseWrite()
	}()
	answer, err := io.ReadAll(c)
	if err != nil || string(answer) != "a\n"+request {
		t.Errorf("%d bytes came back, want %d; %v", len(answer), len(request)+2, err)
	}
}

func TestStopEndsConnections(t *testing.T) {
	l, stop := serving(t, program(t, "a"))
	c := connect(t, l.Addr().String())
	line(t, c)
	stop()
	ended(t, c)
}

func TestClientThatBreaksOffLeavesNothingOpen(t *testing.T) {
	far, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = far.Close() }()
	l, _ := serving(t, far.Addr().String())
	c := connect(t, l.Addr().String())
	server, err := far.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	_ = c.SetLinger(0)
	_ = c.Close()
	_ = server.SetReadDeadline(time.Now().Add(within))
	ended(t, server)
}

func TestPreferredPortIsTakenIfFree(t *testing.T) {
	free, err := net.ResolveTCPAddr("tcp4", vacant(t))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	first, err := listen(free.Port, log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	if got := first.Addr().(*net.TCPAddr).Port; got != free.Port {
		t.Errorf("port %d, want %d", got, free.Port)
	}
	second, err := listen(free.Port, log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	if got := second.Addr().(*net.TCPAddr).Port; got == free.Port {
		t.Errorf("port %d is taken twice", got)
	}
}
