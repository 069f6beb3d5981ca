// Package freeport opens free ports on loopback, and leaves alone those that envtest
// has reserved.
//
// envtest picks a free port, closes it, and starts a server that opens it again. In
// between any other program may take it. For programs that use envtest too it leaves a
// reservation: a file named after the port, in a folder of the user's cache, which the
// suite's process keeps locked as long as it lives. Two minutes later any suite may
// remove the file.
//
// The same lock tells a server whether the suite that started it is still alive, which
// package shim uses. It runs before most of the program is initialised, so this package
// imports the standard library only.
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
	// validity is the time for which envtest respects a reservation.
	validity = 2 * time.Minute
)

// Listener is a listener on a port of 127.0.0.1.
type Listener struct {
	*net.TCPListener
	release func()
}

// Listen listens on a port of 127.0.0.1; 0 is any free port that envtest has not
// reserved. Until the listener is closed, no suite gets the port either.
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
		_ = l.Close() // a server of a suite is about to open it
	}
	return nil, fmt.Errorf("opening a port on 127.0.0.1: envtest has reserved all of %d free ports", attempts)
}

func open(port int) (*Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	return &Listener{TCPListener: l.(*net.TCPListener), release: func() {}}, nil
}

// Close closes the listener. The reservation goes first: while the port is open, no
// suite can have made another one.
func (l *Listener) Close() error {
	l.release()
	return l.TCPListener.Close()
}

// reserve keeps envtest from using a port that is open already. It reports false if
// envtest has reserved it.
func reserve(port int) (release func(), ok bool) {
	for _, folder := range folders() {
		path := filepath.Join(folder, name(port))
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			continue // a folder that this process may not write, or no suite has made
		}
		switch lock(file, exclusive) {
		case locked:
			return func() { _, _ = os.Remove(path), file.Close() }, true
		case held:
			_ = file.Close()
			return nil, false
		}
		_ = file.Close() // a file system without locks
	}
	return func() {}, true
}

// Reservation is envtest's file for a port.
type Reservation struct{ file *os.File }

// Find returns the reservation of a port. It is nil if there is none, or if it is too
// old to say anything about the port's present user.
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

// AwaitEnd returns when the process that made the reservation has ended.
func (r *Reservation) AwaitEnd() { await(r.file) }

func name(port int) string { return "port-" + strconv.Itoa(port) }

// folders lists where envtest keeps its reservations: the second is for users without
// a cache.
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
	held // by another process
)
