// Package project reads a kubebuilder-layout project for koboshi check. It finds out how
// to build and start the project's controller, and what the controller needs in a
// cluster.
//
//	PROJECT, go.mod, cmd/ ──▶ main package ──Build──▶ program ──--help──▶ its flags ─┐
//	config/default ──▶ objects ─┬─▶ Install, Webhooks, Identity, Roles               ├─▶ Subject
//	  (or config/{crd,rbac,…})  └─▶ the manager's Deployment ──▶ arguments, Env ─────┘
//	config/samples ──▶ Samples
//
// Package project never guesses silently: for everything that is missing or left out, a
// note names the flag that supplies it.
package project

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

// Options names the files of a project that are not in the places that kubebuilder uses.
// Paths are relative to Dir.
type Options struct {
	// Dir is the folder of the project; empty means the current folder.
	Dir string
	// Main is the folder of the manager's main package; set by --main.
	Main string
	// CRDs, RBAC and Webhooks are files, folders of YAML or kustomizations. Their objects
	// replace the objects of the same kinds in Kustomization. They are set by --crds,
	// --rbac and --webhooks.
	CRDs, RBAC, Webhooks string
	// Samples is a file or folder of sample objects; set by --samples.
	Samples string
	// Kustomization is built instead of config/default; set by --kustomization.
	Kustomization string
	// Args are added to the arguments of the manager; set by --args.
	Args []string
	// Env is added to the environment of the manager; set by --env.
	Env []string
	// Command is started unchanged instead of the manager. If it is set, no main package
	// is needed and Build does nothing.
	Command []string
	// WebhookPort is the port on which the controller serves webhooks; set by
	// --webhook-port. 0 means the port in the controller's flags or its Pod, or else
	// controller-runtime's default.
	WebhookPort int
	// Election replaces the arguments that make the controller elect a leader; set by
	// --election.
	Election []string
	// Opened is called before the manager is built, which may take minutes. If it returns an
	// error, Prepare fails with that error. It may be nil.
	Opened func(*Project) error
	// AllNotes makes Prepare report notes even if Command is set.
	AllNotes bool
}

// With these flags, the user names what Load does not find.
const (
	flagMain          = "--main"
	flagCRDs          = "--crds"
	flagRBAC          = "--rbac"
	flagWebhooks      = "--webhooks"
	flagSamples       = "--samples"
	flagKustomization = "--kustomization"
	flagArgs          = "--args"
	flagEnv           = "--env"
)

// Project describes a project.
type Project struct {
	Dir    string // absolute
	Name   string
	Module string // the module of the nearest go.mod
	Main   string // the folder of the main package, relative to Dir
	// CRDs lists the files with CustomResourceDefinitions, relative to Dir.
	CRDs []string
	// Samples lists the samples, whose files are relative to Dir.
	Samples []scenario.Sample
	// Subject is complete except for its command and the fields that depend on the
	// manager's flags: Webhook, Election and parts of Env. Build adds them.
	Subject subject.Subject
	// Notes report to the user what was not found or was left out, and which flag
	// supplies it.
	Notes []string

	options Options
	manager *manager
}

// Load reads a project without starting any program.
func Load(ctx context.Context, o Options) (*Project, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("reading the project: %w", err)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("reading the project: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("reading the project: %s is not a folder", dir)
	}
	p := &Project{Dir: dir, Name: filepath.Base(dir), options: o}
	file, err := projectfile.Read(dir)
	if err != nil {
		return nil, err
	}
	p.Name = cmp.Or(file.ProjectName, p.Name)
	if err := p.findMain(file.ProjectName); err != nil {
		return nil, err
	}
	docs, err := p.objects(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.describe(docs, file.Resources); err != nil {
		return nil, err
	}
	if p.Samples, err = p.samples(); err != nil {
		return nil, err
	}
	return p, nil
}

// FromManifests describes a command using only the manifests in CRDs, RBAC and Webhooks,
// which are files, folders of YAML, or kustomizations.
func FromManifests(o Options) (*Project, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	p := &Project{Dir: dir, Name: filepath.Base(o.Command[0]), options: o}
	var docs []document
	for _, given := range []struct{ flag, path string }{{flagCRDs, o.CRDs}, {flagRBAC, o.RBAC}, {flagWebhooks, o.Webhooks}} {
		if given.path == "" {
			continue
		}
		more, err := p.read(given.path)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", given.flag, given.path, err)
		}
		if len(more) == 0 {
			return nil, fmt.Errorf("%s %s contains no object", given.flag, given.path)
		}
		docs = append(docs, more...)
	}
	if err := p.describe(docs, nil); err != nil {
		return nil, err
	}
	if o.Webhooks != "" && !conversion(p.Subject.Webhooks) {
		return nil, fmt.Errorf("%s %s contains no webhook that is called through a Service", flagWebhooks, o.Webhooks)
	}
	return p, nil
}

func (p *Project) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(p.Notes, note) {
		p.Notes = append(p.Notes, note)
	}
}

// path makes a path from the options absolute.
func (p *Project) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.Dir, path)
}

// rel returns a path for display.
func (p *Project) rel(path string) string {
	if rel, err := filepath.Rel(p.Dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
