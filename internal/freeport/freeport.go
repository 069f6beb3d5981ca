// Package freeport listens on free loopback ports and avoids those that envtest has
// reserved.
//
// envtest picks a free port, closes it, and starts a server that opens it again. Before the
// server opens the port, any other program may take it. To warn other programs that use
// envtest, envtest leaves a reservation: a file named after the port, in a folder of the
// user's cache. The suite's process keeps this reservation file locked as long as it lives.
// Any suite may remove a reservation file two minutes after it was made.
//
// Package shim uses the lock on a reservation to learn whether the suite that started a
// server is still alive. Package shim runs before most of the program is initialised, so
// package freeport imports only the standard library.
package freeport

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

const (
	attempts = 100
	// validity is the time during which envtest respects a reservation.
	validity = 2 * time.Minute
)

// Listener is a listener on a port of 127.0.0.1.
type Listener struct {
	*net.TCPListener
	release func()
}

// Listen listens on a port of 127.0.0.1; 0 means any free port that envtest has not
// reserved. Until the listener is closed, envtest does not give that port to any suite.
func Listen(port int) (net.Listener, error) {
	if port != 0 {
		l, err := open(port)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	for range attempts {
		l, err := open(0)
		if err != nil {
			return nil, err
		}
		if release, ok := reserve(l.Addr().(*net.TCPAddr).Port); ok {
			l.release = sync.OnceFunc(release)
			return l, nil
		}
		_ = l.Close() // the server of some suite is about to open it
	}
	return nil, fmt.Errorf("opening a port on 127.0.0.1: tried %d free ports, but envtest has reserved them all", attempts)
}

func open(port int) (*Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	return &Listener{TCPListener: l.(*net.TCPListener), release: func() {}}, nil
}

// Close closes the listener. It removes the reservation first, because no suite can
// reserve the port while it is still open.
func (l *Listener) Close() error {
	l.release()
	return l.TCPListener.Close()
}

// reserve keeps envtest from using a port that is open already. It reports false if envtest
// has reserved the port.
func reserve(port int) (release func(), ok bool) {
	for _, folder := range folders() {
		path := filepath.Join(folder, name(port))
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			continue // no suite has made the folder, or this process may not write to it
		}
		switch lock(file, exclusive) {
		case locked:
			return func() { _, _ = os.Remove(path), file.Close() }, true
		case held:
			_ = file.Close()
			return nil, false
		}
		_ = file.Close() // the file system has no locks
	}
	return func() {}, true
}

// Reservation is envtest's file for a port.
type Reservation struct{ file *os.File }

// Find returns the reservation of a port. It returns nil if there is none, or if the
// reservation is too old to show anything about the port's present user.
func Find(port int) *Reservation {
	for _, folder := range folders() {
		file, err := os.Open(filepath.Join(folder, name(port)))
		if err != nil {
			continue
		}
		r := &Reservation{file: file}
		switch lock(file, shared) {
		case held:
			return r
		case locked:
			unlock(file)
			if info, err := file.Stat(); err == nil && time.Since(info.ModTime()) < validity {
				return r
			}
		}
		_ = file.Close()
	}
	return nil
}

// Held reports whether the process that made the reservation is alive.
func (r *Reservation) Held() bool {
	if lock(r.file, shared) == locked {
		unlock(r.file)
		return false
	}
	return true
}

// AwaitEnd waits until the process that made the reservation has ended.
func (r *Reservation) AwaitEnd() { await(r.file) }

func name(port int) string { return "port-" + strconv.Itoa(port) }

// folders lists the folders where envtest keeps its reservations. The last folder, below
// os.TempDir, is for users without a cache folder.
func folders() []string {
	const folder = "kubebuilder-envtest"
	all := []string{filepath.Join(os.TempDir(), folder)}
	if cache, err := os.UserCacheDir(); err == nil {
		all = append([]string{filepath.Join(cache, folder)}, all...)
	}
	return all
}

// lockResult is the outcome of trying to lock a file.
type lockResult int

const (
	unsupported lockResult = iota
	locked
	held // another process holds the lock
)
