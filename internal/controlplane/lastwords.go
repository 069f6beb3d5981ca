package controlplane

import (
	"fmt"
	"io"
	"os"

	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// A component that cannot go on ends the process by itself: etcd through zap's
// Fatal, the others through klog.Fatal. Both would leave their reason in a log
// file and the person with a silent exit.

// fatalHook says in one line why a component ends the process.
type fatalHook struct {
	component, log string
	to             io.Writer
}

// OnWrite is called after the entry was logged.
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
	_, _ = fmt.Fprintf(h.to, "koboshi: %s cannot go on: %s (log: %s)\n", h.component, reason, h.log)
	os.Exit(1)
}

func (p *Plane) fatal(component string) fatalHook {
	h := fatalHook{component: component, log: p.logs.Path(component), to: os.Stderr}
	if p.opts.LastWords != nil {
		h.to = p.opts.LastWords
	}
	return h
}

// exitWithKlog makes klog.Fatal speak. It is the global klog's, so the API
// server's; its reason is too long for a line.
func (p *Plane) exitWithKlog() {
	klog.OsExit = func(int) { p.fatal(apiserverName).exit("see the end of its log") }
}
