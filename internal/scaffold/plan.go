package scaffold

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
	"github.com/koboshi-dev/koboshi/internal/scaffold/merge"
)

// A Plan holds the changes that a command is going to make. Nothing has been
// written yet.
type Plan struct {
	Dir     string
	Changes []Change
	// Modules lists the modules that the project needs in addition, as arguments of go get.
	Modules []string
	// Generate means that the markers of the project have changed.
	Generate bool
	// Notes lists what the user should know, in whole sentences without a period.
	Notes []string
}

// open reads the PROJECT file of a folder, which must be one that this package can edit.
func open(dir string) (*projectfile.File, error) {
	f, err := projectfile.Read(dir)
	if err != nil {
		return nil, err
	}
	if f.Version == "" && len(f.Layout) == 0 {
		return nil, fmt.Errorf("there is no %s in %s; run koboshi init first, or change to the folder of a project", projectfile.Name, dir)
	}
	if err := f.Check(); err != nil {
		return nil, err
	}
	for _, needed := range []struct{ key, value string }{{"repo", f.Repo}, {"projectName", f.ProjectName}} {
		if needed.value == "" {
			return nil, fmt.Errorf("%s: %s is missing; add it", projectfile.Name, needed.key)
		}
	}
	return f, nil
}

// plan computes the changes that follow from an edit of PROJECT. If forced is set, files
// that a person has changed are replaced or deleted.
func plan(dir string, f *projectfile.File, forced bool, edit func(*projectfile.File) error) (*Plan, error) {
	s, err := scaffoldingOf(dir)
	if err != nil {
		return nil, err
	}
	before, err := s.render(f)
	if err != nil {
		return nil, err
	}
	old, err := f.Bytes()
	if err != nil {
		return nil, err
	}
	if err := edit(f); err != nil {
		return nil, err
	}
	after, err := s.render(f)
	if err != nil {
		return nil, err
	}
	p := &Plan{Dir: dir}
	if p.Changes, err = difference(dir, before, after, merge.File); err != nil {
		return nil, err
	}
	if forced {
		force(p.Changes)
	}
	return p, p.project(f, old)
}

// project adds the changes of AGENTS.md and of the PROJECT file, which comes last: if writing
// fails before, the command can be repeated.
func (p *Plan) project(f *projectfile.File, old []byte) error {
	if err := p.agents(f); err != nil {
		return err
	}
	data, err := f.Bytes()
	if err != nil || bytes.Equal(data, old) {
		return err
	}
	c := Change{Action: ActionUpdate, Path: projectfile.Name, Old: old, New: data}
	if _, err := os.Stat(filepath.Join(p.Dir, projectfile.Name)); err != nil {
		c.Action, c.Old = ActionCreate, nil
	}
	p.Changes = append(p.Changes, c)
	return nil
}
