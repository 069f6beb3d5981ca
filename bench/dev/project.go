package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// An edit is a kind of change to the operator's source code.
type edit string

const (
	// editBody changes the body of a function.
	editBody edit = "body"
	// editType adds a field with a marker to the spec of the resource, which changes its CRD.
	editType edit = "type"
)

var edits = []edit{editBody, editType}

// These are the operator's files that the benchmark edits.
const (
	controllerFile = "internal/controller/bucket.go"
	typesFile      = "api/v1/storagebucket_types.go"
)

// project is a copy of the operator. Its Reconcile prints a line that shows which edits the running
// code contains.
type project struct {
	dir string
	// name is a part of each edit, and differs between loops and between runs. If edits were
	// equal, the go command would find the compiled packages of the other loop, or of an earlier
	// run, in its cache.
	name string
	// controller and types are the contents of the edited files before any edit.
	controller, types string
	// bodies and fields count the edits so far.
	bodies, fields int
}

// copyOperator copies the operator from the root module into a new folder for a loop.
func copyOperator(root, dir, name string) (*project, error) {
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "operators", "storagebucket"))); err != nil {
		return nil, fmt.Errorf("copying operators/storagebucket: %w", err)
	}
	p := &project{dir: dir, name: name}
	for file, content := range map[string]*string{controllerFile: &p.controller, typesFile: &p.types} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		*content = string(data)
	}
	for _, e := range edits {
		if err := p.write(e); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// save makes the next edit of a kind.
func (p *project) save(e edit) error {
	if e == editBody {
		p.bodies++
	} else {
		p.fields++
	}
	return p.write(e)
}

func (p *project) write(e edit) error {
	file := controllerFile
	content, err := withBody(p.controller, p.bodyMarker())
	if e == editType {
		file = typesFile
		content, err = withFields(p.types, p.fields, p.typeMarker())
	}
	if err != nil {
		return fmt.Errorf("%s: %w; adapt bench/dev to the operator", file, err)
	}
	return os.WriteFile(filepath.Join(p.dir, file), []byte(content), 0o644)
}

// marker returns the text that the code prints in each reconcile of a StorageBucket.
func (p *project) marker() string { return p.bodyMarker() + p.typeMarker() }

func (p *project) bodyMarker() string { return fmt.Sprintf("bench: %s, body %d, ", p.name, p.bodies) }

func (p *project) typeMarker() string { return fmt.Sprintf("%s, type %d.", p.name, p.fields) }

// withBody makes Reconcile begin with a statement that prints both markers. It uses println,
// because this needs no import and does not depend on the level of the log.
func withBody(controller, marker string) (string, error) {
	const head = "func (r *Buckets) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {\n"
	return insertAfter(controller, head, fmt.Sprintf("\tprintln(%q + storagev1.BenchType)\n", marker))
}

// withFields adds n fields to the spec, and the constant that Reconcile prints. One save of one
// file changes both.
func withFields(types string, n int, marker string) (string, error) {
	var fields strings.Builder
	for i := range n {
		fmt.Fprintf(&fields, `	// benchField%[1]d was added by edit %[1]d of the benchmark.
	// +kubebuilder:validation:MaxLength=%[1]d
	// +optional
	BenchField%[1]d string `+"`json:\"benchField%[1]d,omitempty\"`\n\n", i+1)
	}
	edited, err := insertAfter(types, "\ntype StorageBucketSpec struct {\n", fields.String())
	return edited + fmt.Sprintf("\n// BenchType counts the edits of the benchmark.\nconst BenchType = %q\n", marker), err
}

func insertAfter(source, line, text string) (string, error) {
	before, after, found := strings.Cut(source, line)
	if !found {
		return "", fmt.Errorf("there is no line %q", strings.TrimSpace(line))
	}
	return before + line + text + after, nil
}
