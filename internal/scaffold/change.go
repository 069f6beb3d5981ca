package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/scaffold/merge"
)

// An Action is the effect of a command on a file.
type Action string

// The actions.
const (
	ActionCreate Action = "create"
	ActionUpdate Action = "update"
	ActionDelete Action = "delete"
	ActionMove   Action = "move"
)

// A Change is the effect of a command on one file of a project.
type Change struct {
	Action Action
	// Path is relative to the project's folder, with slashes. From is the old path of a file
	// that is moved.
	Path, From string
	// Old and New are the contents before and after. Old is nil for a new file, and New is
	// nil for a deleted file.
	Old, New []byte
	// Conflicts lists the parts of the difference that cannot be applied, because a person
	// has changed the same part of the file.
	Conflicts []merge.Conflict
	// Forcible means that --force overrides the conflicts: the whole file is replaced or
	// deleted.
	Forcible bool
}

// difference returns the part of the difference between two trees that a project's folder
// lacks. It writes nothing.
func difference(dir string, before, after Tree, merge mergeFunc) ([]Change, error) {
	d := differ{dir: dir, merge: merge, moved: map[string]string{}}
	for at, file := range before {
		if _, stays := after[at]; stays {
			continue
		}
		for to, other := range after {
			if _, existed := before[to]; !existed && other.ID == file.ID {
				d.moved[to] = at
			}
		}
	}
	gone := map[string]bool{}
	for _, at := range after.Paths() {
		from, moved := d.moved[at]
		if !moved {
			from = at
		}
		gone[from] = true
		was, existed := before[from]
		d.file(at, from, was, after[at], existed)
	}
	d.needed(after)
	for _, at := range before.Paths() {
		if _, stays := after[at]; !stays && !gone[at] {
			d.delete(at, before[at])
		}
	}
	return d.changes, d.err
}

// A mergeFunc applies the difference between base and theirs to ours.
type mergeFunc func(name string, base, ours, theirs []byte) ([]byte, []merge.Conflict)

// A differ collects changes.
type differ struct {
	dir     string
	merge   mergeFunc
	moved   map[string]string // new path → old path
	changes []Change
	err     error
}

// read returns the content of a file, or nil if there is none.
func (d *differ) read(name string) []byte {
	data, err := os.ReadFile(filepath.Join(d.dir, filepath.FromSlash(name)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && d.err == nil {
		d.err = err
	}
	if err == nil && data == nil {
		data = []byte{}
	}
	return data
}

func (d *differ) file(at, from string, was, is File, existed bool) {
	moved := at != from
	if existed && !moved && (is.Generated || bytes.Equal(was.Content, is.Content)) {
		return
	}
	ours := d.read(from)
	switch {
	case ours == nil && existed:
		return // a person has deleted it
	case ours == nil:
		d.changes = append(d.changes, Change{Action: ActionCreate, Path: at, New: is.Content})
	case !existed:
		d.exists(at, ours, is)
	case is.Generated:
		d.changes = append(d.changes, Change{Action: ActionMove, Path: at, From: from, Old: ours, New: ours})
	default:
		c := Change{Action: ActionUpdate, Path: at, Old: ours}
		if c.New, c.Conflicts = d.merge(at, was.Content, ours, is.Content); moved {
			c.Action, c.From = ActionMove, from
		} else if bytes.Equal(c.New, ours) && len(c.Conflicts) == 0 {
			return
		}
		d.changes = append(d.changes, c)
	}
}

// needed adds shared Go files, such as the functions that all tests of controllers use, to folders
// that lack them and in which the command creates other files. A project that kubebuilder
// scaffolded never had these files.
func (d *differ) needed(after Tree) {
	created := map[string]bool{}
	for _, c := range d.changes {
		created[path.Dir(c.Path)] = created[path.Dir(c.Path)] || c.Action == ActionCreate
	}
	for _, at := range after.Paths() {
		file := after[at]
		planned := slices.ContainsFunc(d.changes, func(c Change) bool { return c.Path == at })
		if file.Shared && !planned && path.Ext(at) == ".go" && created[path.Dir(at)] && d.read(at) == nil {
			d.changes = append(d.changes, Change{Action: ActionCreate, Path: at, New: file.Content})
		}
	}
}

// exists handles a file that koboshi has not scaffolded, but is about to.
func (d *differ) exists(at string, ours []byte, is File) {
	if bytes.Equal(ours, is.Content) || is.Generated {
		return
	}
	d.changes = append(d.changes, Change{Action: ActionUpdate, Path: at, Old: ours, New: is.Content, Forcible: true, Conflicts: []merge.Conflict{{
		Reason: "the file exists already; move it away, or replace it with --force",
	}}})
}

func (d *differ) delete(at string, was File) {
	ours := d.read(at)
	if ours == nil {
		return
	}
	c := Change{Action: ActionDelete, Path: at, Old: ours, Forcible: true}
	if !bytes.Equal(withoutHeader(at, ours), withoutHeader(at, was.Content)) && !was.Generated {
		c.Conflicts = []merge.Conflict{{Reason: "you changed this file; delete it by hand, or with --force"}}
	}
	d.changes = append(d.changes, c)
}

// Rewrite changes the import paths in all Go files of a project whose packages have moved,
// except for the files that changes contains already.
func Rewrite(dir string, changes []Change, moved map[string]string) ([]Change, error) {
	if len(moved) == 0 {
		return changes, nil
	}
	for i, c := range changes {
		if c.New != nil && path.Ext(c.Path) == ".go" {
			changes[i].New = importsOf(c.New, moved)
		}
	}
	err := goFiles(dir, func(rel string) error {
		if slices.ContainsFunc(changes, func(c Change) bool { return c.Path == rel || c.From == rel }) {
			return nil
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(rel)))
		if err != nil {
			return err
		}
		if next := importsOf(data, moved); !bytes.Equal(next, data) {
			changes = append(changes, Change{Action: ActionUpdate, Path: rel, Old: data, New: next})
		}
		return nil
	})
	return changes, err
}

// goFiles visits the Go files of a project, except for those that the go command ignores.
func goFiles(dir string, visit func(name string) error) error {
	return filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && file != dir && (name == "vendor" || name == "testdata" || name[0] == '.' || name[0] == '_') {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(file) != ".go" {
			return nil
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(rel))
	})
}

// importsOf returns the source with other import paths. A file that does not parse stays as
// it is.
func importsOf(source []byte, moved map[string]string) []byte {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.ImportsOnly)
	if err != nil {
		return source
	}
	out := slices.Clone(source)
	for _, spec := range slices.Backward(file.Imports) {
		old, _ := strconv.Unquote(spec.Path.Value)
		if to, ok := moved[old]; ok {
			start, end := set.Position(spec.Path.Pos()).Offset, set.Position(spec.Path.End()).Offset
			out = slices.Concat(out[:start], []byte(strconv.Quote(to)), out[end:])
		}
	}
	if bytes.Equal(out, source) {
		return source
	}
	if formatted, err := format.Source(out); err == nil {
		return formatted
	}
	return out
}

// force overrides the conflicts that concern whole files.
func force(changes []Change) {
	for i := range changes {
		if changes[i].Forcible {
			changes[i].Conflicts = nil
		}
	}
}

// skip leaves out the parts that have conflicts, and returns what remains. The notes name the
// parts.
func skip(changes []Change) (rest []Change, notes []string) {
	for _, c := range changes {
		for _, conflict := range c.Conflicts {
			at := c.Path
			if conflict.Line > 0 {
				at += fmt.Sprintf(":%d", conflict.Line)
			}
			notes = append(notes, fmt.Sprintf("%s: left out a change: %s", at, conflict.Reason))
		}
		whole := c.Forcible && len(c.Conflicts) > 0
		if c.Conflicts = nil; !whole && (c.From != "" || !bytes.Equal(c.Old, c.New)) {
			rest = append(rest, c)
		}
	}
	return rest, notes
}

// Conflicting returns the changes that have conflicts.
func Conflicting(changes []Change) []Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return len(c.Conflicts) == 0 })
}

// Write applies the changes. Every new content is on the disk before the first file is
// replaced, so a full disk changes nothing.
func Write(dir string, changes []Change) (err error) {
	staged := map[string]string{} // path → temporary file
	defer func() {
		for _, temporary := range staged {
			_ = os.Remove(temporary) // exists only if something failed
		}
	}()
	for _, c := range changes {
		if c.New == nil {
			continue
		}
		if staged[c.Path], err = stage(dir, c); err != nil {
			return fmt.Errorf("writing %s: %w", c.Path, err)
		}
	}
	for _, c := range changes {
		if temporary, ok := staged[c.Path]; ok {
			if err := os.Rename(temporary, filepath.Join(dir, filepath.FromSlash(c.Path))); err != nil {
				return fmt.Errorf("writing %s: %w", c.Path, err)
			}
			delete(staged, c.Path)
		}
		gone := c.From
		if c.Action == ActionDelete {
			gone = c.Path
		}
		if gone != "" {
			if err := remove(dir, gone); err != nil {
				return err
			}
		}
	}
	return nil
}

// stage writes the new content of a file beside it, and returns the name.
func stage(dir string, c Change) (string, error) {
	at := filepath.Join(dir, filepath.FromSlash(c.Path))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return "", err
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(at); err == nil {
		mode = info.Mode().Perm()
	} else if strings.HasPrefix(string(c.New), "#!") {
		mode = 0o755
	}
	f, err := os.CreateTemp(filepath.Dir(at), "."+filepath.Base(at)+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(c.New)
	return f.Name(), errors.Join(err, f.Chmod(mode), f.Close())
}

// remove deletes a file, and the folders that are then empty.
func remove(dir, name string) error {
	if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		if os.Remove(filepath.Join(dir, filepath.FromSlash(up))) != nil {
			break // it is not empty
		}
	}
	return nil
}
