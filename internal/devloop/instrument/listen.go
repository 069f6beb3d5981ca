package instrument

import (
	"bufio"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/devloop/instrument/report"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Receiver receives the reports of one process.
type Receiver struct {
	// Env is the variable that tells the process where to report.
	Env string

	token    []byte
	listener net.Listener
	log      *trace.Log
	instance string
	mu       sync.Mutex
	closed   bool
	open     map[net.Conn]bool
	readers  sync.WaitGroup
}

// Listen listens on loopback, and records everything that a process of the given name reports
// there, until Close is called. The path of a Unix socket could be too long: folders for temporary
// files often have long names.
func Listen(log *trace.Log, instance string) (*Receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the reports of the manager: %w", err)
	}
	token := rand.Text()
	r := &Receiver{
		Env: report.KoboshiAddress + "=" + token + "@" + listener.Addr().String(), token: []byte(token),
		listener: listener, log: log, instance: instance, open: map[net.Conn]bool{},
	}
	r.readers.Add(1)
	go r.accept()
	return r, nil
}

// Close ends the recording, after everything that has arrived is recorded, if the process has
// ended. A nil Receiver receives nothing.
func (r *Receiver) Close() {
	if r == nil {
		return
	}
	_ = r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for c := range r.open {
		// What an ended process has sent can still be read.
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
	}
	r.mu.Unlock()
	r.readers.Wait()
}

func (r *Receiver) accept() {
	defer r.readers.Done()
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			_ = c.Close()
			return
		}
		r.open[c] = true
		r.readers.Add(1)
		r.mu.Unlock()
		go r.read(c)
	}
}

// mostOfLine limits the length of a report, in bytes. Errors may be long.
const mostOfLine = 1 << 20

func (r *Receiver) read(c net.Conn) {
	defer r.readers.Done()
	defer func() {
		r.mu.Lock()
		delete(r.open, c)
		r.mu.Unlock()
		_ = c.Close()
	}()
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, mostOfLine)
	if !lines.Scan() || subtle.ConstantTimeCompare(lines.Bytes(), r.token) == 0 {
		return
	}
	for lines.Scan() {
		var one report.KoboshiReconcile
		if json.Unmarshal(lines.Bytes(), &one) == nil && one.ID != "" {
			r.log.Record(trace.Entry{Instance: r.instance, Reconcile: entry(&one, r.log.Started())})
		}
	}
}

// entry returns a report with times since the start of the trace.
func entry(r *report.KoboshiReconcile, started time.Time) *trace.Reconcile {
	e := &trace.Reconcile{
		ID: r.ID, What: r.What, Controller: r.Controller, Namespace: r.Namespace, Name: r.Name,
		Dropped: r.Dropped, Waited: r.Waited, Waiting: r.Length, Failures: r.Failures, Priority: r.Priority,
		RequeueAfter: r.RequeueAfter, Requeue: r.Requeue, Error: r.Error,
	}
	for _, t := range r.Triggers {
		e.Triggers = append(e.Triggers, trace.Trigger{
			Event: t.Event, Handler: t.Handler, Kind: t.Type, Namespace: t.Namespace, Name: t.Name, UID: t.UID,
			ResourceVersion: t.ResourceVersion, At: t.At.Sub(started), After: t.After, Reconcile: t.Reconcile,
		})
	}
	return e
}
