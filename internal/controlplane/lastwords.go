package controlplane

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"sync"

	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// A component with a fatal error ends the process itself: etcd through zap's Fatal, the
// others through klog.Fatal. Without the code in this file, the reason of a fatal error
// would be only in a log file, and the user would see a silent exit.

// fatalHook prints one line with the reason why a component ends the process.
type fatalHook struct {
	component, log string
	to             io.Writer
}

// OnWrite is called after the entry has been logged. OnWrite prints the reason and exits.
func (h fatalHook) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	reason := entry.Message
	if err, ok := enc.Fields["error"]; ok {
		reason = fmt.Sprintf("%s: %v", reason, err)
	}
	h.exit(reason)
}

func (h fatalHook) exit(reason string) {
	_, _ = fmt.Fprintf(h.to, "koboshi: %s cannot continue: %s (log: %s)\n", h.component, reason, h.log)
	os.Exit(1)
}

func (p *Plane) fatal(component string) fatalHook {
	h := fatalHook{component: component, log: p.logs.Path(component), to: os.Stderr}
	if p.opts.LastWords != nil {
		h.to = p.opts.LastWords
	}
	return h
}

// exitWithKlog makes klog.Fatal print the reason for the exit, which is the
// last error in the log. The last error is always the API server's, because
// only the API server logs through the global klog.
func (p *Plane) exitWithKlog(log *lastError) {
	klog.OsExit = func(int) {
		if p.tasks.ctx.Err() != nil {
			// Errors are expected while the plane stops.
			runtime.Goexit()
		}
		p.fatal(apiserverName).exit(log.message())
	}
}

// lastError passes klog's output on and remembers the last error in it.
type lastError struct {
	next io.Writer
	mu   sync.Mutex
	line string
}

// klogError matches the start of an error in klog's format, up to the message.
var klogError = regexp.MustCompile(`^E\d{4} [^\]]*\] `)

func (l *lastError) Write(entry []byte) (int, error) {
	if head := klogError.Find(entry); head != nil {
		line, _, _ := bytes.Cut(entry[len(head):], []byte("\n"))
		l.mu.Lock()
		l.line = string(line)
		l.mu.Unlock()
	}
	return l.next.Write(entry)
}

func (l *lastError) message() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line
}
