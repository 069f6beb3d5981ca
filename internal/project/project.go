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
	"io"
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
	// Manifests are files, folders of YAML or kustomizations with objects of any kind; "-"
	// means Stdin. They replace the project's own manifests; set by --manifests.
	Manifests []string
	// Helm is the folder or the archive of a chart, which is rendered with the files Values
	// and the settings Set, in Helm's syntax. They are set by --helm, -f and --set.
	Helm        string
	Values, Set []string
	// Kubernetes is the minor version of the cluster for which the chart is rendered, such as
	// 1.34. Empty means the version that Koboshi contains. It is set by --kubernetes.
	Kubernetes string
	// Stdin is read for the path "-".
	Stdin io.Reader
	// Given names files or folders with further objects, such as a Secret that the
	// installation needs but does not contain; set by --given. WithCRDs names files or
	// folders with CRDs of other projects; set by --with-crds.
	Given, WithCRDs []string
	// StubSecrets and StubConfigMaps are objects to make up, each as NAMESPACE/NAME or
	// NAMESPACE/NAME=KEY,KEY; set by --stub-secret and --stub-configmap.
	StubSecrets, StubConfigMaps []string
	// Deployment is the name of the workload that runs the controller, as NAME or
	// NAMESPACE/NAME. It is needed if there are several; set by --deployment.
	Deployment string
	// ArgsOnly ignores the arguments of the Deployment; set by --args-only.
	ArgsOnly bool
	// Args are added to the arguments of the manager; set by --args.
	Args []string
	// Env is added to the environment of the manager; set by --env. See Environment for
	// entries without a value.
	Env []string
	// Command is started instead of the manager. If it is set, no main package is needed.
	// Its arguments are not changed, but with Manifests or Helm, the arguments of the
	// Deployment that the command does not set are added.
	Command []string
	// Built is the program of the manager, if it has been built already. Prepare uses it instead of
	// building the main package.
	Built string
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
	flagManifests     = "--manifests"
	flagHelm          = "--helm"
	flagValues        = "-f"
	flagSet           = "--set"
	flagGiven         = "--given"
	flagWithCRDs      = "--with-crds"
	flagDeployment    = "--deployment"
	flagStubSecret    = "--stub-secret"
	flagStubConfigMap = "--stub-configmap"
	flagArgs          = "--args"
	flagEnv           = "--env"
	flagArgsOnly      = "--args-only"
	flagWebhookPort   = "--webhook-port"
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
	mains   []string // the main packages, if there are several
	// apartFromProject means that only the manifests in options are read.
	apartFromProject bool
}

// Load reads a project without starting any program.
func Load(ctx context.Context, o Options) (*Project, error) {
	p, err := newProject(o)
	if err != nil {
		return nil, fmt.Errorf("reading the project: %w", err)
	}
	dir := p.Dir
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
	if err := p.chooseMain(); err != nil {
		return nil, err
	}
	if p.Samples, err = p.samples(); err != nil {
		return nil, err
	}
	return p, nil
}

// FromManifests describes a command using only the manifests that the options name.
func FromManifests(ctx context.Context, o Options) (*Project, error) {
	p, err := newProject(o)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	p.Name, p.apartFromProject = filepath.Base(o.Command[0]), true
	docs, err := p.objects(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.describe(docs, nil); err != nil {
		return nil, err
	}
	p.noteImageEnvironment()
	if o.Webhooks != "" && !conversion(p.Subject.Webhooks) {
		return nil, fmt.Errorf("%s %s contains no webhook that is called through a Service, and the controller serves only such webhooks; name the file that has them, or omit %s", flagWebhooks, o.Webhooks, flagWebhooks)
	}
	if o.Samples != "" || p.samplesFolder() != "" {
		if p.Samples, err = p.samples(); err != nil && o.Samples == "" {
			p.note("%v", err)
			err = nil // the samples of the project may belong to another controller
		}
	}
	return p, err
}

func newProject(o Options) (*Project, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("%w; name the folder of the project with --dir", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder; name the folder of the project with --dir", dir)
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Env, err = Environment(o.Env); err != nil {
		return nil, err
	}
	return &Project{Dir: dir, Name: filepath.Base(dir), options: o}, nil
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

// Workload returns the kind, the namespace and the name of the workload that runs the manager in
// a cluster. The kind is empty if the installation has none.
func (p *Project) Workload() (kind, namespace, name string) {
	if p.manager == nil {
		return "", "", ""
	}
	o := p.manager.workload.Object
	return o.GetKind(), namespaceOf(o), o.GetName()
}
