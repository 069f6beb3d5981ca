package output

import (
	"fmt"
	"strings"
	"testing"
)

// The texts in this file are real outputs, shortened.
const (
	goPanic = `I1125 10:00:00.000000       1 main.go:12] starting
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x4a1b2c]

goroutine 1 [running]:
main.main()
`
	goFatal    = "fatal error: concurrent map writes\n\ngoroutine 52 [running]:\n"
	recovered  = `{"level":"error","ts":"2026-11-25T10:00:00Z","msg":"Observed a panic","controller":"widget","panic":"runtime error: index out of range [3] with length 2","panicGoValue":"...","stacktrace":"..."}` + "\n"
	reconciled = `2026-11-25T10:00:00Z	ERROR	Reconciler error	{"controller": "widget", "error": "panic: assignment to entry in nil map [recovered]"}` + "\n"
	webhook    = "2026/11/25 10:00:00 http: panic serving 10.0.0.1:41234: runtime error: slice bounds out of range [:5] with capacity 3\n"
	klog       = `E1125 10:00:00.000000       1 panic.go:262] "Observed a panic" panic="runtime error: invalid memory address or nil pointer dereference" panicGoValue="..."` + "\n"
	traceback  = `ERROR:kopf.objects:[default/demo] Handler 'create' failed with an exception. Will retry.
Traceback (most recent call last):
  File "/app/controller.py", line 31, in create
    size = spec["size"]
           ~~~~^^^^^^^^
KeyError: 'size'
`
	chained = `Traceback (most recent call last):
  File "/app/controller.py", line 7, in secret
    return cache[name]
KeyError: 'demo'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/app/controller.py", line 9, in secret
    return api.read_namespaced_secret(name, namespace)
kubernetes.client.exceptions.ApiException: (500)
Reason: Internal Server Error

`
	refusedPython = `Traceback (most recent call last):
  File "/usr/lib/python3.12/urllib/request.py", line 643, in http_error_default
    raise HTTPError(req.full_url, code, msg, hdrs, fp)
urllib.error.HTTPError: HTTP Error 409: Conflict
`
	javaMain = `Exception in thread "main" java.lang.NullPointerException: Cannot invoke "Spec.getSize()" because "spec" is null
	at com.example.Reconciler.reconcile(Reconciler.java:42)
`
	javaLogged = `2026-11-25 10:00:00 ERROR Error during event processing ExecutionScope{resource id: demo}
java.lang.IndexOutOfBoundsException: Index 1 out of bounds for length 1
	at java.base/java.util.ArrayList.get(ArrayList.java:427)
`
	javaRefused = `Exception in thread "main" io.fabric8.kubernetes.client.KubernetesClientException: Failure executing: POST
	at io.fabric8.kubernetes.client.dsl.internal.OperationSupport.requestFailure(OperationSupport.java:671)
`
	rust    = "thread 'tokio-runtime-worker' panicked at src/controller.rs:88:14:\ncalled `Option::unwrap()` on a `None` value\nnote: run with `RUST_BACKTRACE=1`\n"
	rustNew = "\nthread 'main' (71234) panicked at src/main.rs:5:10:\nindex out of bounds: the len is 0 but the index is 0\n"
	node    = `/app/index.js:12
    const size = object.spec.size;
                             ^

TypeError: Cannot read properties of undefined (reading 'size')
    at reconcile (/app/index.js:12:30)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)

Node.js v20.11.1
`
	nodeRejected = "(node:17) UnhandledPromiseRejectionWarning: ReferenceError: naem is not defined\n    at reconcile (/app/index.js:3:1)\n"
	nodeOffline  = "TypeError: fetch failed\n    at node:internal/deps/undici/undici:12345:11\n  [cause]: Error: connect ECONNREFUSED 127.0.0.1:6443\n"
	deno         = "error: Uncaught TypeError: Cannot read properties of null (reading 'metadata')\n    at file:///app/main.ts:9:21\n"
)

func TestAPanicIsFoundInEachLanguage(t *testing.T) {
	for text, line := range map[string]string{
		goPanic:      "panic: runtime error: invalid memory address or nil pointer dereference",
		goFatal:      "fatal error: concurrent map writes",
		recovered:    `{"level":"error"`,
		reconciled:   "2026-11-25T10:00:00Z",
		webhook:      "2026/11/25 10:00:00 http: panic serving",
		klog:         "E1125",
		traceback:    "KeyError: 'size'",
		javaMain:     `Exception in thread "main" java.lang.NullPointerException`,
		javaLogged:   "java.lang.IndexOutOfBoundsException: Index 1",
		rust:         "thread 'tokio-runtime-worker' panicked at src/controller.rs:88:14:",
		rustNew:      "thread 'main' (71234) panicked at",
		node:         "TypeError: Cannot read properties of undefined (reading 'size')",
		nodeRejected: "(node:17) UnhandledPromiseRejectionWarning: ReferenceError",
		deno:         "error: Uncaught TypeError",
	} {
		got := FindPanic(text)
		if !strings.HasPrefix(got.Line, line) || !strings.Contains(got.Text, got.Line) {
			t.Errorf("in %q: %+v", text, got)
		}
		if again := FindPanic(got.Text); again.Line != got.Line {
			t.Errorf("in the text of %+v, the panic is %q", got, again.Line)
		}
	}
}

func TestAnErrorThatARequestCausedIsNoPanic(t *testing.T) {
	for _, text := range []string{
		chained, refusedPython, javaRefused, nodeOffline,
		"TypeError: an error without a stack\nnext line\n",
		"level=info msg=\"do not panic: all is well\"\n",
		"Traceback (most recent call last):\n  File \"x.py\", line 1\n",
		"the KeyError: 'x' was handled\n",
		"error: unable to list: fatal error: stream closed\n",
		"",
	} {
		if got := FindPanic(text); got.Line != "" {
			t.Errorf("in %q: %+v", text, got)
		}
	}
}

func TestThePanicIsKeptHoweverMuchIsPrintedAfterIt(t *testing.T) {
	for name, text := range map[string]string{"Go": recovered, "Python": traceback, "Java": javaLogged, "Node": node, "Rust": rust} {
		for _, size := range []int{1, 7, 4096} { // the pieces in which the output arrives
			out := NewTail(1000)
			all := strings.Repeat("a line before it\n", 500) + text + strings.Repeat("a line after it\n", 5000)
			for i := 0; i < len(all); i += size {
				_, _ = out.Write([]byte(all[i:min(i+size, len(all))]))
			}
			got, want := out.Panic(), FindPanic(text)
			if got.Line != want.Line || want.Line == "" {
				t.Errorf("%s in pieces of %d bytes: %q, want %q", name, size, got.Line, want.Line)
			}
			if n := strings.Count(got.Text, "\n") + 1; n > mostContext {
				t.Errorf("%s: %d lines are kept", name, n)
			}
		}
	}
}

func TestOnlyTheFirstPanicIsKept(t *testing.T) {
	if got := FindPanic(goFatal + strings.Repeat("x\n", 100) + goPanic); got.Line != "fatal error: concurrent map writes" {
		t.Errorf("%q", got.Line)
	}
}

func TestALongTracebackKeepsItsBeginningAndItsEnd(t *testing.T) {
	var b strings.Builder
	b.WriteString("Traceback (most recent call last):\n")
	for i := range 200 {
		fmt.Fprintf(&b, "  File \"x.py\", line %d, in f\n", i)
	}
	b.WriteString("RecursionError: maximum recursion depth exceeded\n")
	got := FindPanic(b.String())
	if !strings.HasPrefix(got.Text, "Traceback") || !strings.Contains(got.Text, "line 199,") || strings.Contains(got.Text, "line 9,") || !strings.HasSuffix(got.Text, "exceeded") {
		t.Errorf("%s", got.Text)
	}
}

func FuzzAPanicIsFoundTheSameInPieces(f *testing.F) {
	for _, text := range []string{goPanic, traceback, chained, node, javaLogged, rust} {
		f.Add(text, 5)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		var s scanner
		for rest := []byte(text); len(rest) > 0; {
			n := min(max(size, 1), len(rest))
			s.write(rest[:n])
			rest = rest[n:]
		}
		if got, want := s.end(), FindPanic(text); got != want {
			t.Errorf("%+v, in one piece %+v", got, want)
		}
	})
}

func BenchmarkScan(b *testing.B) {
	line := []byte(`{"level":"info","ts":"2026-11-25T10:00:00Z","logger":"controller","msg":"reconciled","namespace":"default","name":"demo","took":"12ms"}` + "\n")
	out := NewTail(64 << 10)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		_, _ = out.Write(line)
	}
}
