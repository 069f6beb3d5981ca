// Package project reads a kubebuilder-layout project, whoever made it, and says
// what koboshi check needs to know: how its controller is built and started, and
// what has to be in a cluster for it.
//
//	PROJECT, go.mod, cmd/ ──▶ main package ──Build──▶ program ──--help──▶ its flags ─┐
//	config/default ──▶ objects ─┬─▶ Install, Webhooks, Identity, Roles               ├─▶ Subject
//	  (or config/{crd,rbac,…})  └─▶ the manager's Deployment ──▶ arguments, Env ─────┘
//	config/samples ──▶ Samples
//
// Nothing is guessed in silence: what was not found, or left out, is a note that
// names the flag by which a person can say it.
package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// Options says where things are that are not where kubebuilder puts them. Paths
// are relative to Dir.
type Options struct {
	// Dir is the project; empty means here.
	Dir string
	// Main is the folder of the manager's main package, --main.
	Main string
	// CRDs, RBAC and Webhooks are files, folders of YAML or kustomizations that
	// are taken instead of what Kustomization has of these kinds: --crds, --rbac,
	// --webhooks.
	CRDs, RBAC, Webhooks string
	// Samples is a file or folder of sample objects, --samples.
	Samples string
	// Kustomization is built instead of config/default, --kustomization.
	Kustomization string
	// Args are added to the arguments of the manager, --args.
	Args []string
	// Env is added to its environment, --env.
	Env []string
	// Command is started as it is instead of a manager that is built; then no
	// main package is looked for, and Build does nothing.
	Command []string
	// WebhookPort is where it serves its webhooks, --webhook-port; 0 means that
	// its flags, its Pod or controller-runtime's default say it.
	WebhookPort int
}

// The flags that say what was not found.
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

// Project is what was found.
type Project struct {
	Dir    string // absolute
	Name   string
	Module string // of the nearest go.mod
	Main   string // the folder of the main package, relative to Dir
	// CRDs are the files that CustomResourceDefinitions came from, relative to Dir.
	CRDs    []string
	Samples []Sample
	// Subject is complete but for its command; Build adds that, and what depends
	// on the flags that the manager knows: Webhook, Election, some of Env.
	Subject subject.Subject
	// Notes are for people: what was not found or is left out, and which flag says
	// it.
	Notes []string

	options Options
	manager *manager
}

// Sample is a file of samples.
type Sample struct {
	File    string // relative to Dir
	Objects []unstructured.Unstructured
}

// Load reads a project. It starts no program.
func Load(ctx context.Context, o Options) (*Project, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("reading the project: %w", err)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("reading the project: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("reading the project: %s is no folder", dir)
	}
	p := &Project{Dir: dir, Name: filepath.Base(dir), options: o}
	layout, err := readLayout(dir)
	if err != nil {
		return nil, err
	}
	if layout.Name != "" {
		p.Name = layout.Name
	}
	if err := p.findMain(layout); err != nil {
		return nil, err
	}
	docs, err := p.objects(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.describe(docs, layout); err != nil {
		return nil, err
	}
	if p.Samples, err = p.samples(); err != nil {
		return nil, err
	}
	return p, nil
}

// FromManifests describes a command by manifests alone: CRDs, RBAC and Webhooks
// of the options, which are files, folders of YAML, or kustomizations.
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
			return nil, fmt.Errorf("%s %s: there is no object in it", given.flag, given.path)
		}
		docs = append(docs, more...)
	}
	if err := p.describe(docs, layout{}); err != nil {
		return nil, err
	}
	if o.Webhooks != "" && !conversion(p.Subject.Webhooks) {
		return nil, fmt.Errorf("%s %s: there is no webhook behind a service in it", flagWebhooks, o.Webhooks)
	}
	return p, nil
}

func (p *Project) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(p.Notes, note) {
		p.Notes = append(p.Notes, note)
	}
}

// path makes one that a person gave absolute.
func (p *Project) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.Dir, path)
}

// rel is how a path is shown.
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
