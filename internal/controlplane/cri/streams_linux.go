package cri

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/logs"
	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/terminal"
)

// streams holds both ends of a container's standard streams. The container receives its ends of the
// streams when it starts; the runtime uses the other ends.
//
//	stdin  ◀── attached clients
//	stdout ──▶ log, attached clients      (with a terminal: all in one)
//	stderr ──▶ log, attached clients
type streams struct {
	in, out, err *os.File // the container's ends, until it has started
	terminal     *os.File // nil if there is no terminal
	fromOut      *os.File // the program's standard output
	fromErr      *os.File // nil with a terminal
	stdout       fan
	stderr       fan
	copying      sync.WaitGroup
	ended        chan struct{} // closed when everything has been read

	mu   sync.Mutex
	toIn *os.File // nil if there is no stdin or it has been closed
}

// lingering is the maximum time for which streams are read after the end of the program.
// The processes of the container end together with the program, but may have passed their
// streams to other processes.
const lingering = 2 * time.Second

func openStreams(tty, stdin bool) (*streams, error) {
	s := &streams{ended: make(chan struct{})}
	if tty {
		controlling, end, err := terminal.Open()
		if err != nil {
			return nil, err
		}
		s.terminal, s.fromOut = controlling, controlling
		s.in, s.out, s.err = end, end, end
		if stdin {
			s.toIn = controlling
		}
		return s, nil
	}
	var errs [3]error
	if stdin {
		s.in, s.toIn, errs[0] = os.Pipe()
	} else {
		s.in, errs[0] = os.Open(os.DevNull)
	}
	s.fromOut, s.out, errs[1] = os.Pipe()
	s.fromErr, s.err, errs[2] = os.Pipe()
	if err := errors.Join(errs[:]...); err != nil {
		for _, f := range []*os.File{s.in, s.toIn, s.fromOut, s.out, s.fromErr, s.err} {
			_ = f.Close() // Close accepts nil
		}
		return nil, err
	}
	return s, nil
}

// started closes the container's ends and starts to read the output. The log may
// be nil.
func (s *streams) started(log *logs.File) {
	for _, f := range []*os.File{s.in, s.out, s.err} {
		_ = f.Close() // with a terminal, all are the same file; closing it again is harmless
	}
	s.read(log, logs.Stdout, s.fromOut, &s.stdout)
	if s.fromErr != nil {
		s.read(log, logs.Stderr, s.fromErr, &s.stderr)
	}
	go func() {
		s.copying.Wait()
		close(s.ended)
	}()
}

func (s *streams) read(log *logs.File, name string, from io.Reader, to *fan) {
	s.copying.Go(func() {
		from := io.TeeReader(from, to)
		// Reading ends when the last process has closed the stream; a terminal
		// then returns an error.
		if log != nil {
			_ = log.Copy(name, from)
		}
		// Without a log, or if logging fails, reading continues: a program must
		// not block because nothing reads its output.
		_, _ = io.Copy(io.Discard, from)
	})
}

// finish waits until all output of the ended program has been read.
func (s *streams) finish() {
	s.closeStdin()
	select {
	case <-s.ended:
	case <-time.After(lingering):
	}
	_ = s.fromOut.Close()
	if s.fromErr != nil {
		_ = s.fromErr.Close()
	}
}

func (s *streams) closeStdin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.toIn != nil && s.terminal == nil {
		_ = s.toIn.Close()
	}
	s.toIn = nil
}

func (s *streams) stdin() *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.toIn
}

// attach connects a client until the container has ended or the client has
// disconnected.
func (s *streams) attach(ctx context.Context, in io.Reader, out, err io.Writer, once bool) {
	gone := make(chan struct{}, 3)
	leave := func() { gone <- struct{}{} }
	if out != nil {
		defer s.stdout.add(out, leave)()
	}
	if err != nil {
		defer s.stderr.add(err, leave)()
	}
	if to := s.stdin(); in != nil && to != nil {
		go func() {
			_, _ = io.Copy(to, in)
			if once {
				s.closeStdin()
			}
			if out == nil && err == nil {
				leave()
			}
		}()
	}
	select {
	case <-s.ended:
	case <-gone:
	case <-ctx.Done():
	}
}

// A fan writes to all attached clients. As in other runtimes, no output is lost:
// a client that does not read blocks the program.
type fan struct {
	mu      sync.Mutex
	clients map[*client]struct{}
}

type client struct {
	to    io.Writer
	leave func()
}

// add attaches a client; remove detaches it.
func (f *fan) add(to io.Writer, leave func()) (remove func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clients == nil {
		f.clients = map[*client]struct{}{}
	}
	c := &client{to, leave}
	f.clients[c] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.clients, c)
	}
}

// Write never fails. If writing to a client fails, the client has disconnected
// and is removed.
func (f *fan) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.clients {
		if _, err := c.to.Write(p); err != nil {
			delete(f.clients, c)
			c.leave()
		}
	}
	return len(p), nil
}
