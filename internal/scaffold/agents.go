package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

// agentsPath is the file that tells programmers, and programs that write code, how to work on
// the project.
const agentsPath = "AGENTS.md"

// These lines enclose the list of kinds in AGENTS.md.
const (
	kindsBegin = "<!-- koboshi:kinds:begin -->\n"
	kindsEnd   = "<!-- koboshi:kinds:end -->\n"
)

// Agents plans the change that makes the list of kinds in AGENTS.md match PROJECT. The plan has no
// changes if the list is up to date, or if there is no list, as in projects of kubebuilder.
func Agents(dir string) (*Plan, error) {
	f, err := projectfile.Read(dir)
	if err != nil {
		return nil, err
	}
	p := &Plan{Dir: dir}
	return p, p.agents(f)
}

// agents adds the change of AGENTS.md. A person may edit everything outside the list, so the
// list is replaced, and nothing is merged.
func (p *Plan) agents(f *projectfile.File) error {
	if i := slices.IndexFunc(p.Changes, func(c Change) bool { return c.Path == agentsPath }); i >= 0 {
		p.Changes[i].New = withKinds(p.Changes[i].New, f)
		return nil
	}
	data, err := os.ReadFile(filepath.Join(p.Dir, agentsPath))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if next := withKinds(data, f); !bytes.Equal(next, data) {
		p.Changes = append(p.Changes, Change{Action: ActionUpdate, Path: agentsPath, Old: data, New: next})
	}
	return nil
}

// withKinds returns the file with the kinds of a project in its list, if it has one.
func withKinds(file []byte, f *projectfile.File) []byte {
	before, rest, begins := bytes.Cut(file, []byte(kindsBegin))
	_, after, ends := bytes.Cut(rest, []byte(kindsEnd))
	if !begins || !ends {
		return file
	}
	return slices.Concat(before, []byte(kindsBegin), kinds(f), []byte(kindsEnd), after)
}

// kinds returns a table with the kinds of a project and their files, or nothing if there are
// no kinds.
func kinds(f *projectfile.File) []byte {
	var out bytes.Buffer
	for i := range f.Resources {
		r := &f.Resources[i]
		names := namingOf(f, r, "")
		files := []struct {
			exists bool
			path   string
		}{
			{r.Own(), "api/v1alpha7/exemplar_types.go"},
			{r.Reconciled(), "internal/controller/exemplar_controller.go"},
			{r.HasWebhooks(), "internal/webhook/v1alpha7/exemplar_webhook.go"},
			{r.Own() && r.Reconciled(), "check/gallery_v1alpha7_exemplar.yaml"},
		}
		_, _ = fmt.Fprintf(&out, "| %s %s/%s |", r.Kind, r.QualifiedGroup(), r.Version)
		for _, file := range files {
			if file.exists {
				_, _ = fmt.Fprintf(&out, " `%s`", names.path(file.path))
			}
			out.WriteString(" |")
		}
		out.WriteByte('\n')
	}
	if out.Len() == 0 {
		return nil
	}
	return append([]byte("| kind | types | controller | webhooks | scenario for faults |\n|---|---|---|---|---|\n"), out.Bytes()...)
}
