package instrument

import (
	"context"
	"go/parser"
	"go/token"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/devloop/instrument/report"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// The excerpts have the form of controller-runtime 0.25, and without type parameters and
// priorities, that of 0.15.
const (
	controllerFile = `package controller

func (c *Controller[request]) reconcileHandler(ctx context.Context, req request, priority int) {
	log := c.LogConstructor(&req)
	ctx = addReconcileID(ctx, reconcileID) // a comment
	result, err := c.Reconcile(ctx, req)
	switch {
	case err != nil:
		if errors.Is(err, reconcile.TerminalError(nil)) {
			panic(err)
		}
	}
}
`
	handlerFile = `package internal

import "k8s.io/client-go/util/workqueue"

type EventHandler[object any, request comparable] struct{ queue workqueue.TypedRateLimitingInterface[request] }

func (e *EventHandler[object, request]) OnAdd(obj any) {
	for _, p := range e.predicates {
		if !p.Create(c) {
			return
		}
	}
	e.handler.Create(ctx, c, e.queue)
}

func (e *EventHandler[object, request]) OnUpdate(oldObj, newObj any) { e.handler.Update(ctx, u, e.queue) }
func (e *EventHandler[object, request]) OnDelete(obj any)            { e.handler.Delete(ctx, d, e.queue) }
`
	sourceFile  = "package source\n\nfunc f() {\n\tcs.handler.Generic(ctx, evt, queue)\n}\n"
	clusterFile = "package cluster\n\nfunc New() {\n\toptions.HTTPClient, err = rest.HTTPClientFor(config)\n}\n"
)

// controllerRuntime writes a folder with the excerpts.
func controllerRuntime(t *testing.T, folder string, change func(string) string) string {
	t.Helper()
	files := map[string][]byte{}
	for name, text := range map[string]string{
		"pkg/internal/controller/controller.go": controllerFile, "pkg/internal/source/event_handler.go": handlerFile,
		"pkg/source/source.go": sourceFile, "pkg/cluster/cluster.go": clusterFile, "pkg/client/client.go": "package client\n\nfunc New() {\n\toptions.HTTPClient, err = rest.HTTPClientFor(config)\n}\n",
		"pkg/manager/manager.go": "package manager\n\nimport _ \"sigs.k8s.io/controller-runtime/pkg/internal/controller\"\n",
	} {
		files[name] = []byte(change(text))
	}
	if err := write(folder, files); err != nil {
		t.Fatal(err)
	}
	return folder
}

func unchanged(text string) string { return text }

func TestEachPlaceIsInstrumentedOnItsLine(t *testing.T) {
	t.Parallel()
	root := controllerRuntime(t, t.TempDir(), unchanged)
	files, err := rewritten(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"pkg/internal/controller/controller.go": `	ctx = addReconcileID(ctx, reconcileID); ctx = koboshi.KoboshiStarted(ctx, c.Name, c.Queue, req, string(reconcileID), priority) // a comment
	result, err := c.Reconcile(ctx, req); koboshi.KoboshiEnded(ctx, result, err, errors.Is(err, reconcile.TerminalError(nil)))
`,
		"pkg/internal/source/event_handler.go": `	e.handler.Create(ctx, c, KoboshiQueue(koboshi.KoboshiEvent("created", e.handler, c.Object), e.queue))`,
		"pkg/source/source.go":                 `	cs.handler.Generic(ctx, evt, internal.KoboshiQueue(koboshi.KoboshiEvent("generic", cs.handler, evt.Object), queue))`,
		"pkg/cluster/cluster.go":               `	options.HTTPClient, err = koboshi.KoboshiHTTPClient(config)`,
	} {
		got := string(files[name])
		if !strings.Contains(got, want) {
			t.Errorf("%s does not contain\n%s\nbut is\n%s", name, want, got)
		}
		before, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(got, "\n") != strings.Count(string(before), "\n") {
			t.Errorf("the lines of %s have other numbers", name)
		}
	}
	for name, text := range files {
		if _, err := parser.ParseFile(token.NewFileSet(), name, text, 0); err != nil {
			t.Error(err)
		}
	}
}

func TestTheQueueHasTheFormOfTheVersion(t *testing.T) {
	t.Parallel()
	const file = "pkg/internal/source/koboshi_queue.go"
	untyped := func(text string) string {
		return strings.NewReplacer("[object any, request comparable]", "", "[object, request]", "", "[request]", "", "Typed", "").Replace(text)
	}
	for _, of := range []struct {
		change      func(string) string
		priority    bool
		has, hasNot string
	}{
		{untyped, false, "workqueue.RateLimitingInterface", "Typed"},
		{unchanged, false, "workqueue.TypedRateLimitingInterface[request]", "priorityqueue"},
		{unchanged, true, "priorityqueue.PriorityQueue[request]", ""},
	} {
		root := controllerRuntime(t, t.TempDir(), of.change)
		if of.priority {
			if err := os.MkdirAll(filepath.Join(root, "pkg/controller/priorityqueue"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		files, err := rewritten(root)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(files[file]); !strings.Contains(text, of.has) || of.hasNot != "" && strings.Contains(text, of.hasNot) {
			t.Errorf("the queue is\n%s", text)
		}
	}
}

func TestAControllerRuntimeOfAnotherFormIsRefused(t *testing.T) {
	t.Parallel()
	root := controllerRuntime(t, t.TempDir(), func(text string) string { return strings.ReplaceAll(text, "addReconcileID", "withID") })
	if _, err := rewritten(root); err == nil || !strings.Contains(err.Error(), "pkg/internal/controller/controller.go has 1 of the 2 places that Koboshi knows") {
		t.Error(err)
	}
}

// project writes a module that imports the excerpts from the folder to which replace points.
func project(t *testing.T, more string) string {
	t.Helper()
	dir := t.TempDir()
	err := write(dir, map[string][]byte{
		"go.mod": []byte("module example.com/m\n\ngo 1.24\n\nrequire sigs.k8s.io/controller-runtime v0.25.0\n" + more),
		"m.go":   []byte("package m\n\nimport _ \"sigs.k8s.io/controller-runtime/pkg/manager\"\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func goFiles(t *testing.T, dir, pkg string, flags ...string) string {
	t.Helper()
	list := exec.Command("go", append(append([]string{"list"}, flags...), "-f", "{{.Dir}} {{.GoFiles}}", pkg)...)
	list.Dir = dir
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestTheCopyReplacesAnotherReplacement(t *testing.T) {
	t.Setenv("GOWORK", "off")
	fork := controllerRuntime(t, t.TempDir(), unchanged)
	if err := write(fork, map[string][]byte{"go.mod": []byte("module sigs.k8s.io/controller-runtime\n"), "pkg/internal/log/log.go": []byte("package log\n")}); err != nil {
		t.Fatal(err)
	}
	dir := project(t, "\nreplace sigs.k8s.io/controller-runtime v0.25.0 => "+fork+"\n")
	before, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	flags, err := Prepare(context.Background(), dir, ".", to)
	if err != nil {
		t.Fatal(err)
	}
	if got := goFiles(t, dir, "sigs.k8s.io/controller-runtime/pkg/internal/log", flags...); !strings.HasPrefix(got, to) || !strings.Contains(got, "koboshi_report.go") {
		t.Errorf("the build uses %s", got)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "go.mod")); string(after) != string(before) {
		t.Error("the go.mod of the project has changed")
	}
	if left, _ := filepath.Glob(filepath.Join(fork, "pkg/internal/*/koboshi*")); len(left) > 0 {
		t.Errorf("the fork has %q", left)
	}
}

func TestAVendorFolderIsOverlaid(t *testing.T) {
	t.Setenv("GOWORK", "off")
	dir := project(t, "")
	vendored := controllerRuntime(t, filepath.Join(dir, "vendor/sigs.k8s.io/controller-runtime"), unchanged)
	if err := write(dir, map[string][]byte{
		"vendor/modules.txt": []byte("# sigs.k8s.io/controller-runtime v0.25.0\n## explicit\nsigs.k8s.io/controller-runtime/pkg/internal/controller\nsigs.k8s.io/controller-runtime/pkg/internal/log\nsigs.k8s.io/controller-runtime/pkg/manager\n"),
		"vendor/sigs.k8s.io/controller-runtime/pkg/internal/log/log.go": []byte("package log\n"),
	}); err != nil {
		t.Fatal(err)
	}
	flags, err := Prepare(context.Background(), dir, ".", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got := goFiles(t, dir, "sigs.k8s.io/controller-runtime/pkg/internal/log", flags...); !strings.HasPrefix(got, vendored) || !strings.Contains(got, "koboshi_report.go") {
		t.Errorf("the build uses %s", got)
	}
}

func TestWhatCannotBeInstrumentedIsRefusedWithTheReason(t *testing.T) {
	fork := controllerRuntime(t, t.TempDir(), unchanged)
	if err := write(fork, map[string][]byte{"go.mod": []byte("module sigs.k8s.io/controller-runtime\n")}); err != nil {
		t.Fatal(err)
	}
	dir := project(t, "\nreplace sigs.k8s.io/controller-runtime => "+fork+"\n")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOPROXY", "off")
	without := t.TempDir()
	if err := write(without, map[string][]byte{"go.mod": []byte("module example.com/without\n\ngo 1.24\n"), "m.go": []byte("package m\n")}); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(context.Background(), without, ".", t.TempDir()); err == nil || !strings.Contains(err.Error(), "does not use controller-runtime") {
		t.Error(err)
	}
	if err := write(without, map[string][]byte{"m.go": []byte("package m\n\nimport _ \"example.com/missing\"\n")}); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(context.Background(), without, ".", t.TempDir()); err == nil || !strings.Contains(err.Error(), "example.com/missing") {
		t.Error(err)
	}
	if err := write(dir, map[string][]byte{"go.work": []byte("go 1.24\n\nuse .\n")}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOFLAGS", "")
	if _, err := Prepare(context.Background(), dir, ".", t.TempDir()); err == nil || !strings.Contains(err.Error(), "set GOWORK=off") {
		t.Error(err)
	}
}

func TestReportsAreRecordedUntilTheProcessHasEnded(t *testing.T) {
	t.Parallel()
	log := trace.NewLog(time.Now().Add(-time.Minute))
	r, err := Listen(log, "manager-1")
	if err != nil {
		t.Fatal(err)
	}
	token, address, _ := strings.Cut(strings.TrimPrefix(r.Env, report.KoboshiAddress+"="), "@")
	stranger, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = stranger.Write([]byte("wrong\n{\"id\":\"9\",\"what\":\"started\"}\n"))
	if n, err := stranger.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("a stranger reads %d bytes, %v", n, err)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	sent := token + "\n" + `{"id":"1","what":"started","triggers":[{"event":"updated","type":"Ship"}]}
not JSON
{"id":"1","what":"ended"}
`
	if _, err := c.Write([]byte(sent)); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	for {
		recorded := log.Recorded()
		if len(log.Entries()) == 2 {
			break
		}
		<-recorded
	}
	r.Close()
	entries := log.Entries()
	if len(entries) != 2 || entries[0].Instance != "manager-1" || entries[0].Reconcile.Triggers[0].Kind != "Ship" || entries[1].Reconcile.What != "ended" {
		t.Errorf("recorded are %+v", entries)
	}
}

func TestTheProxyKnowsTheHeaderOfTheReporter(t *testing.T) {
	t.Parallel()
	if apiproxy.ReconcileHeader != report.KoboshiHeader {
		t.Errorf("the proxy records %q, but the reporter sends %q", apiproxy.ReconcileHeader, report.KoboshiHeader)
	}
}
