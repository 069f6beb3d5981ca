package forwarding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/koboshi-dev/koboshi/internal/freeport"
)

const (
	// dialTimeout limits the wait for one Pod. On loopback, a connection waits only if the
	// backlog of the program is full.
	dialTimeout = 3 * time.Second
	// lastBytes is the time for which one direction of a connection may continue after
	// the other direction has failed, so that a response in transit can still arrive.
	lastBytes = time.Second
	// acceptPause is the wait after a failed accept, for example when the process has
	// too many open files.
	acceptPause = 100 * time.Millisecond
)

// listener accepts the connections of one Service port. The listener's address never changes, but
// its targets may change at any time.
type listener struct {
	*freeport.Listener
	targets atomic.Pointer[[]string]
	turn    atomic.Uint64
	log     *slog.Logger
}

// listen opens the preferred port if one is given and free, and otherwise any
// port.
func listen(preferred int, log *slog.Logger) (*listener, error) {
	l, err := freeport.Listen(preferred)
	if err != nil && preferred != 0 {
		l, err = freeport.Listen(0)
	}
	if err != nil {
		return nil, fmt.Errorf("opening a port for a service: %w", err)
	}
	return &listener{Listener: l.(*freeport.Listener), log: log}, nil
}

// serve forwards connections until the listener is closed. Accepted connections
// continue until they end or ctx ends.
func (l *listener) serve(ctx context.Context, connections *sync.WaitGroup) {
	for {
		client, err := l.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			l.log.Error("accepting a connection", "address", l.Addr().String(), "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
		default:
			connections.Go(func() { l.forward(ctx, client) })
		}
	}
}

func (l *listener) forward(ctx context.Context, client *net.TCPConn) {
	defer func() { _ = client.Close() }()
	server := l.dial(ctx)
	if server == nil {
		_ = client.SetLinger(0) // at this point, a reset is the nearest thing to a refused connection
		return
	}
	defer func() { _ = server.Close() }()
	defer context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})()
	var requests sync.WaitGroup
	requests.Go(func() { carry(server, client) })
	carry(client, server)
	requests.Wait()
}

// dial connects to the next Pod in turn. If that Pod does not answer, dial tries the
// following ones. The result is nil if no Pod accepts the connection.
func (l *listener) dial(ctx context.Context) *net.TCPConn {
	dialer := net.Dialer{Timeout: dialTimeout}
	targets := *l.targets.Load()
	first := l.turn.Add(1)
	for i := range uint64(len(targets)) {
		target := targets[(first+i)%uint64(len(targets))]
		c, err := dialer.DialContext(ctx, "tcp4", target)
		if err == nil {
			return c.(*net.TCPConn)
		}
		l.log.Info("a Pod did not respond", "address", l.Addr().String(), "pod", target, "err", err)
	}
	l.log.Info("no Pod accepted the connection, so the connection is reset", "address", l.Addr().String(), "ready", len(targets))
	return nil
}

// carry copies data from one connection to the other until the data ends, and then closes
// the other connection for writing.
func carry(to, from *net.TCPConn) {
	_, err := io.Copy(to, from)
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil {
		until := time.Now().Add(lastBytes)
		_ = to.SetDeadline(until)
		_ = from.SetDeadline(until)
	}
}
