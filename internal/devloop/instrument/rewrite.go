package instrument

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The reporter becomes a file of the package internal/log of controller-runtime, which all changed
// packages can import: a package of its own would be missing in vendor/modules.txt.
//
//go:embed report/report.go
var reporter []byte

// reporterPath is the folder of the reporter in controller-runtime, and alias its name in the
// changed files.
const reporterPath, alias = "pkg/internal/log", "koboshi"

// The queues add a trigger to each item that a handler adds. Their form depends on the work queues
// of the version: without a type parameter up to 0.18, and with priorities since 0.20.
var (
	//go:embed queue/untyped.go.txt
	untypedQueue []byte
	//go:embed queue/typed.go.txt
	typedQueue []byte
	//go:embed queue/priority.go.txt
	priorityQueue []byte
)

// rewritten returns the changed and the additional files of a controller-runtime, by their paths in
// it.
func rewritten(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	handlers, folder, clients := "pkg/internal/source/event_handler.go", "pkg/internal/source", 1
	if _, err := os.Stat(filepath.Join(root, handlers)); errors.Is(err, fs.ErrNotExist) {
		handlers, folder, clients = "pkg/source/internal/eventsource.go", "pkg/source/internal", 0 // up to 0.14
	}
	for _, change := range []struct {
		file   string
		places int
		edit   func(*source)
	}{
		{"pkg/internal/controller/controller.go", 2, (*source).aroundReconcile},
		{handlers, 3, func(s *source) { s.handlerCalls("") }},
		{"pkg/source/source.go", 1, func(s *source) { s.handlerCalls("internal.") }},
		{"pkg/cluster/cluster.go", clients, (*source).clients},
		{"pkg/client/client.go", clients, (*source).clients},
	} {
		s, err := parse(filepath.Join(root, change.file))
		if err != nil {
			return nil, err
		}
		change.edit(s)
		if n := len(s.edits); n != change.places {
			return nil, fmt.Errorf("%s has %d of the %d places that Koboshi knows", change.file, n, change.places)
		}
		if len(s.edits) > 0 {
			files[change.file] = s.result()
		}
	}
	files[reporterPath+"/koboshi_report.go"] = bytes.Replace(reporter, []byte("\npackage report\n"), []byte("\npackage log\n"), 1)
	files[folder+"/koboshi_queue.go"] = queueFor(root, files[handlers])
	return files, nil
}

func queueFor(root string, handlers []byte) []byte {
	if !bytes.Contains(handlers, []byte("workqueue.Typed")) {
		return untypedQueue
	}
	if _, err := os.Stat(filepath.Join(root, "pkg/controller/priorityqueue")); err != nil {
		return typedQueue
	}
	return priorityQueue
}

// source is a file with edits. All edits stay on their lines, so that the line numbers in stack
// traces are those of controller-runtime.
type source struct {
	text  []byte
	fset  *token.FileSet
	file  *ast.File
	edits map[int]edit // by offset
}

// edit replaces the text up to an offset.
type edit struct {
	end  int
	text string
}

func parse(path string) (*source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &source{text: text, fset: token.NewFileSet(), edits: map[int]edit{}}
	s.file, err = parser.ParseFile(s.fset, path, text, parser.SkipObjectResolution)
	return s, err
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

func (s *source) insert(at token.Pos, text string) { s.edits[s.offset(at)] = edit{s.offset(at), text} }

func (s *source) replace(n ast.Node, text string) {
	s.edits[s.offset(n.Pos())] = edit{s.offset(n.End()), text}
}

func (s *source) of(n ast.Node) string { return string(s.text[s.offset(n.Pos()):s.offset(n.End())]) }

// result returns the text with the edits and the import of the reporter.
func (s *source) result() []byte {
	s.insert(s.file.Name.End(), fmt.Sprintf("; import %s %q", alias, module+"/"+reporterPath))
	var out bytes.Buffer
	at := 0
	for _, from := range slices.Sorted(maps.Keys(s.edits)) {
		e := s.edits[from]
		out.Write(s.text[at:from])
		out.WriteString(e.text)
		at = e.end
	}
	out.Write(s.text[at:])
	return out.Bytes()
}

// aroundReconcile reports the start and the end of each reconcile: after the ID has been added to
// the context, and after the reconciler has returned.
func (s *source) aroundReconcile() {
	handler := s.method("reconcileHandler")
	if handler == nil {
		return
	}
	receiver := handler.Recv.List[0].Names[0].Name
	priority := ""
	for _, p := range handler.Type.Params.List {
		if len(p.Names) == 1 && p.Names[0].Name == "priority" {
			priority = ", priority"
		}
	}
	for _, statement := range handler.Body.List {
		assignment, ok := statement.(*ast.AssignStmt)
		if !ok || len(assignment.Rhs) != 1 {
			continue
		}
		call, ok := assignment.Rhs[0].(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			continue
		}
		switch ctx := s.of(call.Args[0]); s.of(call.Fun) {
		case "addReconcileID":
			s.insert(assignment.End(), fmt.Sprintf("; %s = %s.KoboshiStarted(%s, %s.Name, %s.Queue, req, string(%s)%s)",
				ctx, alias, ctx, receiver, receiver, s.of(call.Args[1]), priority))
		case receiver + ".Reconcile":
			err, terminal := s.of(assignment.Lhs[1]), "false" // there are no terminal errors up to 0.14
			if bytes.Contains(s.text, []byte("reconcile.TerminalError(nil)")) {
				terminal = "errors.Is(" + err + ", reconcile.TerminalError(nil))"
			}
			s.insert(assignment.End(), fmt.Sprintf("; %s.KoboshiEnded(%s, %s, %s, %s)", alias, ctx, s.of(assignment.Lhs[0]), err, terminal))
		}
	}
}

func (s *source) method(name string) *ast.FuncDecl {
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name && f.Recv != nil && len(f.Recv.List[0].Names) == 1 {
			return f
		}
	}
	return nil
}

// handlerCalls passes to each handler a queue that knows the event.
func (s *source) handlerCalls(queuePackage string) {
	events := map[string]struct{ name, object string }{
		"Create": {"created", "Object"}, "Update": {"updated", "ObjectNew"}, "Delete": {"deleted", "Object"}, "Generic": {"generic", "Object"},
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		to, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || len(call.Args) < 2 { // up to 0.14, there is no context
			return true
		}
		event, ok := events[to.Sel.Name]
		queue, arg := call.Args[len(call.Args)-1], call.Args[len(call.Args)-2]
		if ok && strings.HasSuffix(strings.ToLower(s.of(queue)), "queue") {
			s.replace(queue, fmt.Sprintf("%sKoboshiQueue(%s.KoboshiEvent(%q, %s, %s.%s), %s)",
				queuePackage, alias, event.name, s.of(to.X), s.of(arg), event.object, s.of(queue)))
		}
		return true
	})
}

// clients makes requests name their reconcile.
func (s *source) clients() {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && s.of(call.Fun) == "rest.HTTPClientFor" {
			s.replace(call.Fun, alias+".KoboshiHTTPClient")
		}
		return true
	})
}
