package scaffold

import (
	"fmt"
	"path"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

// EditOptions describes a change of a project as a whole.
type EditOptions struct {
	Dir        string
	MultiGroup bool
	Force      bool
}

// Edit plans the change of a project's layout. Packages that move are imported by their new
// path in all Go files of the project.
func Edit(o EditOptions) (*Plan, error) {
	f, err := open(o.Dir)
	if err != nil {
		return nil, err
	}
	if !o.MultiGroup && f.MultiGroup && len(groupsOf(f)) > 1 {
		return nil, fmt.Errorf("the project has APIs in %d groups, so they cannot share one folder", len(groupsOf(f)))
	}
	moved := map[string]string{}
	p, err := plan(o.Dir, f, o.Force, func(f *projectfile.File) error {
		for i := range f.Resources {
			r := &f.Resources[i]
			was, is := foldersOf(f.MultiGroup, r.Group, r.Version), foldersOf(o.MultiGroup, r.Group, r.Version)
			packages := [][2]string{{was.api, is.api}, {was.controller, is.controller}, {was.webhook, is.webhook}}
			for _, parent := range clientFolders {
				from, to := path.Join(path.Base(path.Dir(was.api)), r.Version), path.Join(path.Base(path.Dir(is.api)), r.Version)
				packages = append(packages, [2]string{parent + from, parent + to})
			}
			for _, dirs := range packages {
				if dirs[0] != dirs[1] {
					moved[path.Join(f.Repo, dirs[0])] = path.Join(f.Repo, dirs[1])
				}
			}
			if to, ok := moved[r.Path]; ok {
				r.Path = to
			}
		}
		f.MultiGroup = o.MultiGroup
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.Changes, err = Rewrite(o.Dir, p.Changes, moved)
	p.Generate = len(p.Changes) > 0
	return p, err
}

// DeleteOptions names what is deleted.
type DeleteOptions struct {
	Dir string
	Kind
	// Webhooks deletes only the webhooks of the kind.
	Webhooks bool
	Force    bool
}

// Delete plans the removal of an API with its controller and webhooks, or of its webhooks.
func Delete(o DeleteOptions) (*Plan, error) {
	f, err := open(o.Dir)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(f.Resources, func(r projectfile.Resource) bool {
		return r.Group == o.Group && r.Version == o.Version && r.Kind == o.Kind.Kind
	})
	if i < 0 || o.Webhooks && f.Resources[i].Webhooks == nil {
		return nil, fmt.Errorf("%s has no %s of kind %s in %s/%s", projectfile.Name, o.what(), o.Kind.Kind, o.Group, o.Version)
	}
	r := f.Resources[i]
	for _, other := range f.Resources {
		if w := other.Webhooks; !o.Webhooks && w != nil && other.Kind == r.Kind && other.Group == r.Group && slices.Contains(w.Spoke, r.Version) {
			return nil, fmt.Errorf("version %s is a spoke of the conversion webhook of %s; delete this webhook first", r.Version, other.Version)
		}
	}
	p, err := plan(o.Dir, f, o.Force, func(f *projectfile.File) error {
		if o.Webhooks {
			f.Resources[i].Webhooks = nil
		} else {
			f.Delete(r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.Generate = true
	return p, nil
}

func (o *DeleteOptions) what() string {
	if o.Webhooks {
		return "webhook"
	}
	return "API"
}
