package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
	"github.com/koboshi-dev/koboshi/internal/scaffold/merge"
)

// InitOptions describes a new project.
type InitOptions struct {
	Dir string // the folder, which must hold no other project
	// Domain is the suffix of the project's API groups.
	Domain string
	// Repo is the path of the Go module; empty means the one in go.mod.
	Repo string
	// Name is the name of the project; empty means the name of the folder.
	Name string
	// License is the license at the top of each Go file: apache2, which is the default, or none.
	// Owner is the holder of the copyright. LicenseFile is a file with a Go comment that is used
	// instead.
	License, Owner, LicenseFile string
	// MultiGroup means that each API group has folders of its own.
	MultiGroup bool
	// Force replaces existing files.
	Force bool
}

// Init plans a new project. If the folder holds the same project already, the plan is empty.
func Init(o InitOptions) (*Plan, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	f, err := projectfile.Read(o.Dir)
	if err != nil {
		return nil, err
	}
	if f.Version != "" {
		if f.Domain == o.Domain && f.Repo == o.Repo && f.ProjectName == o.Name && f.MultiGroup == o.MultiGroup {
			return &Plan{Dir: o.Dir}, nil
		}
		return nil, fmt.Errorf("%s holds the project %s already; to change it, see koboshi edit --help", o.Dir, f.ProjectName)
	}
	if err := o.checkFolder(); err != nil {
		return nil, err
	}
	f = projectfile.New(o.Name, o.Domain, o.Repo)
	f.MultiGroup = o.MultiGroup
	header, err := o.header()
	if err != nil {
		return nil, err
	}
	s := scaffolding{templates: embedded(), header: header}
	after, err := s.render(f)
	if err != nil {
		return nil, err
	}
	p := &Plan{Dir: o.Dir}
	if p.Changes, err = difference(o.Dir, Tree{}, after, merge.File); err != nil {
		return nil, err
	}
	for i, c := range p.Changes {
		// A go.mod that only names the module was written by go mod init.
		if c.Path == "go.mod" && !strings.Contains(string(c.Old), "require") {
			p.Changes[i].Conflicts = nil
		}
	}
	if o.Force {
		force(p.Changes)
	}
	if err := p.record(record{s.templates, ownVersion()}); err != nil {
		return nil, err
	}
	return p, p.project(f, nil)
}

// complete checks the options and fills in the defaults.
func (o *InitOptions) complete() error {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	o.Dir = dir
	if err := projectfile.CheckDomain(o.Domain); err != nil {
		return err
	}
	module, err := moduleOf(dir)
	if err != nil {
		return err
	}
	if o.Repo == "" {
		if o.Repo = module; module == "" {
			return errors.New("the path of the Go module is not known; give it with --repo, for example --repo github.com/you/" + filepath.Base(dir))
		}
	}
	if module != "" && module != o.Repo {
		return fmt.Errorf("--repo %s: go.mod names the module %s", o.Repo, module)
	}
	if !repository.MatchString(o.Repo) {
		return fmt.Errorf("--repo %q is not the path of a Go module, such as github.com/you/%s", o.Repo, filepath.Base(dir))
	}
	o.Name = cmp.Or(o.Name, strings.ToLower(filepath.Base(dir)))
	if problems := validation.IsDNS1123Label(o.Name); len(problems) > 0 {
		return fmt.Errorf("project name %q: %s; give another name with --project-name", o.Name, problems[0])
	}
	return nil
}

// repository matches the paths that Go accepts for modules.
var repository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9._~-]+)*$`)

var moduleLine = regexp.MustCompile(`(?m)^module\s+"?([^"\s]+)`)

// moduleOf returns the module in the folder's own go.mod, or "".
func moduleOf(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	found := moduleLine.FindSubmatch(data)
	if found == nil {
		return "", fmt.Errorf("%s names no module", filepath.Join(dir, "go.mod"))
	}
	return string(found[1]), nil
}

// checkFolder refuses a folder that holds anything other than the files with which a
// repository begins. kubebuilder allows the same files.
func (o *InitOptions) checkFolder() error {
	entries, err := os.ReadDir(o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var others []string
	for _, entry := range entries {
		name := entry.Name()
		allowed := strings.HasPrefix(name, ".") || name[0] >= 'A' && name[0] <= 'Z' || name == "go.mod" || name == "go.sum"
		if !allowed || name == "Makefile" || name == "Dockerfile" {
			others = append(others, name)
		}
	}
	if len(others) == 0 || o.Force {
		return nil
	}
	return fmt.Errorf("%s is not empty: it contains %s; use an empty folder, or add the project to this one with --force",
		o.Dir, strings.Join(others[:min(len(others), 3)], ", ")+more(len(others)-3))
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// groupsOf returns the groups of the APIs that a project defines.
func groupsOf(f *projectfile.File) []string {
	var groups []string
	for _, r := range f.Resources {
		if !slices.Contains(groups, r.Group) {
			groups = append(groups, r.Group)
		}
	}
	return groups
}
