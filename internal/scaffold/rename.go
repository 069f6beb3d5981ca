package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
	"github.com/koboshi-dev/koboshi/internal/scaffold/merge"
)

// RenameOptions describes the new name of a kind.
type RenameOptions struct {
	Dir             string
	Group, Kind, To string
	Plural          string // of the new kind; empty means the regular plural
}

// Rename plans another name for a kind in all its versions, because the versions share a CRD.
//
// The files of the kind are moved. In Go files, the declarations of the kind's packages whose names
// contain the kind are renamed with everything that refers to them. All other parts are changed as
// in every command: by the difference between two renderings.
func Rename(o RenameOptions) (*Plan, error) {
	f, err := open(o.Dir)
	if err != nil {
		return nil, err
	}
	versions, err := o.versions(f)
	if err != nil || versions == nil {
		return &Plan{Dir: o.Dir}, err
	}
	r := renamed{dir: o.Dir}
	s, err := scaffoldingOf(o.Dir)
	if err != nil {
		return nil, err
	}
	if r.before, err = s.render(f); err != nil {
		return nil, err
	}
	old, err := f.Bytes()
	if err != nil {
		return nil, err
	}
	r.prepare(f, versions)
	from := f.Resources[versions[0]]
	f.RenameShape(from, o.To)
	for _, i := range versions {
		f.Resources[i].Kind, f.Resources[i].Plural = o.To, o.plural()
	}
	r.renaming = renamingOf(f, from, f.Resources[versions[0]])
	for _, i := range versions {
		r.controllers(&f.Resources[i], from.Kind)
	}
	if r.after, err = s.render(f); err != nil {
		return nil, err
	}
	r.match(from, o.To)
	p := &Plan{Dir: o.Dir, Generate: true, Notes: []string{fmt.Sprintf(
		"%s is a new API: the objects of kind %s in your clusters keep their kind, so migrate them, and then delete the old CRD", o.To, o.Kind)}}
	if p.Changes, err = r.changes(f.Repo); err != nil {
		return nil, err
	}
	return p, p.project(f, old)
}

// versions returns the indexes of the kind's versions, or nil if it has the new name already.
func (o *RenameOptions) versions(f *projectfile.File) ([]int, error) {
	for _, needed := range []struct{ flag, value string }{{"--kind", o.Kind}, {"--to", o.To}} {
		if needed.value == "" {
			return nil, fmt.Errorf("%s is missing", needed.flag)
		}
	}
	var from, to []int
	for i, r := range f.Resources {
		switch {
		case r.Group != o.Group:
		case r.Kind == o.Kind:
			from = append(from, i)
		case strings.EqualFold(r.Kind, o.To):
			to = append(to, i)
		}
	}
	switch {
	case o.Kind == o.To && len(from) > 0, len(from) == 0 && len(to) > 0:
		return nil, nil
	case len(from) == 0:
		return nil, fmt.Errorf("%s has no API of kind %s in the group %s; see %s for the kinds", projectfile.Name, o.Kind, o.Group, projectfile.Name)
	case len(to) > 0:
		return nil, fmt.Errorf("the project has a kind %s in the group %s already; choose another name", f.Resources[to[0]].Kind, o.Group)
	}
	first := f.Resources[from[0]]
	if !first.Own() {
		return nil, fmt.Errorf("kind %s is defined elsewhere, so this project cannot rename it", o.Kind)
	}
	first.Kind, first.Plural = o.To, o.plural()
	return from, first.CheckNames()
}

// plural returns the plural for PROJECT, which is empty if it is regular.
func (o *RenameOptions) plural() string {
	if o.Plural == projectfile.RegularPlural(o.To) {
		return ""
	}
	return o.Plural
}

// renamed holds a project before and after a kind is renamed.
type renamed struct {
	dir           string
	before, after Tree
	folders       map[string]bool   // the folders with the Go packages of the kind
	ids           []string          // the ends of the IDs of the kind's files
	own           map[string]bool   // the paths of the kind's files
	moved         map[string]string // the new paths of files → the old ones
	renaming
}

// prepare records the folders and the IDs that belong to the old name.
func (r *renamed) prepare(f *projectfile.File, versions []int) {
	r.folders, r.own, r.moved = map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, i := range versions {
		res := f.Resources[i]
		at := foldersOf(f.MultiGroup, res.Group, res.Version)
		for _, folder := range []string{at.api, at.controller, at.webhook} {
			r.folders[folder] = true
		}
		r.ids = append(r.ids, fmt.Sprintf(" %s/%s %s", res.QualifiedGroup(), res.Version, res.Kind))
	}
}

// controllers renames the controllers whose names contain the kind.
func (r *renamed) controllers(res *projectfile.Resource, kind string) {
	res.Controllers = slices.Clone(res.Controllers)
	for i, c := range res.Controllers {
		if c.Name == strings.ToLower(kind) || strings.Contains(camel(c.Name), kind) {
			res.Controllers[i].Name = r.replace(c.Name)
		}
	}
}

// match finds the new paths of the files, and the files that belong to the kind alone.
func (r *renamed) match(from projectfile.Resource, to string) {
	byID := map[string]string{}
	for at, file := range r.after {
		byID[file.ID] = at
	}
	for at, file := range r.before {
		i := slices.IndexFunc(r.ids, func(end string) bool { return strings.HasSuffix(file.ID, end) })
		if i < 0 {
			continue
		}
		r.own[at] = !file.Shared
		next, ok := byID[strings.TrimSuffix(file.ID, from.Kind)+to]
		if ok && next != at {
			r.moved[next] = at
		}
	}
}

// changes returns the changes of all files.
func (r *renamed) changes(module string) ([]Change, error) {
	sources, err := r.sources()
	if err != nil {
		return nil, err
	}
	scaffolded := map[string][]byte{}
	for at, file := range r.before {
		scaffolded[at] = file.Content
	}
	project := resolve(module, sources)
	for _, field := range fieldsOf(project, r.own) {
		if r.replace(field) != field || strings.Contains(strings.ToLower(field), r.names[1][0]) {
			r.keep = append(r.keep, field)
		}
	}
	was := namesOf(resolve(module, scaffolded), r.renaming, r.folders, r.own)
	ours := namesOf(project, r.renaming, r.folders, r.own)
	conflicts := ours.conflicts()
	var changes []Change
	done := map[string]bool{}
	for _, at := range r.after.Paths() {
		c, from := r.file(at, was, ours, sources)
		done[from] = true
		if c == nil && len(conflicts[from]) > 0 {
			c = &Change{Action: ActionUpdate, Path: at, Old: sources[from], New: sources[from]}
		}
		if c != nil {
			c.Conflicts = append(c.Conflicts, conflicts[from]...)
			changes = append(changes, *c)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(sources)) {
		if done[at] {
			continue
		}
		next := ours.apply(at, sources[at], false)
		if !bytes.Equal(next, sources[at]) || len(conflicts[at]) > 0 {
			changes = append(changes, Change{Action: ActionUpdate, Path: at, Old: sources[at], New: next, Conflicts: conflicts[at]})
		}
	}
	return changes, nil
}

// sources reads the scaffolded files, and all other Go files of the module.
func (r *renamed) sources() (map[string][]byte, error) {
	sources := map[string][]byte{}
	read := func(name string) error {
		data, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		sources[name] = slices.Concat([]byte{}, data)
		return err
	}
	for _, tree := range []Tree{r.before, r.after} {
		for at := range tree {
			if err := read(at); err != nil {
				return nil, err
			}
		}
	}
	return sources, goFiles(r.dir, read)
}

// file returns the change of a scaffolded file and its old path.
func (r *renamed) file(at string, was, ours *kindNames, sources map[string][]byte) (*Change, string) {
	from, moved := r.moved[at]
	if !moved {
		from = at
	}
	base, existed := r.before[from]
	old := sources[from]
	if old == nil || !existed {
		return nil, from // a person has deleted it
	}
	c := &Change{Action: ActionUpdate, Path: at, Old: old, New: old}
	if moved {
		c.Action, c.From = ActionMove, from
		if sources[at] != nil {
			c.Conflicts = []merge.Conflict{{Reason: "the file exists already; move it away"}}
			return c, from
		}
	}
	switch is := r.after[at].Content; {
	case base.Generated:
		c.New = ours.apply(from, old, false)
	case path.Ext(at) != ".go" && !r.own[from]:
		c.New, c.Conflicts = merge.Replaced(at, base.Content, old, is)
		c.New = r.references(c.New)
	case path.Ext(at) != ".go":
		c.New, c.Conflicts = replaced(at, is, [2][]byte{base.Content, old}, [2][]byte{[]byte(r.replace(string(base.Content))), []byte(r.replace(string(old)))})
	default:
		plain := [2][]byte{was.apply(from, base.Content, false), ours.apply(from, old, false)}
		words := [2][]byte{was.apply(from, base.Content, true), ours.apply(from, old, true)}
		c.New, c.Conflicts = replaced(at, is, plain, words)
	}
	if !moved && bytes.Equal(c.New, old) && len(c.Conflicts) == 0 {
		return nil, from
	}
	return c, from
}

// references replaces the names of moved files, which a person may have written in another
// way than the scaffold, as in ./ship_admin_role.yaml.
func (r *renamed) references(text []byte) []byte {
	for to, from := range r.moved {
		text = bytes.ReplaceAll(text, []byte(path.Base(from)), []byte(path.Base(to)))
	}
	return text
}

// replaced returns the file of a person with the new name. If replacing words in the old rendering
// gives the new one, the words are also replaced in the person's file; otherwise the difference is
// merged.
func replaced(at string, is []byte, plain, words [2][]byte) ([]byte, []merge.Conflict) {
	if bytes.Equal(words[0], is) {
		return words[1], nil
	}
	return merge.Replaced(at, plain[0], plain[1], is)
}
