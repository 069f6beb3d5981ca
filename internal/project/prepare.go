package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// Observer receives the progress of the preparation.
type Observer interface {
	Phase(name string)
	Note(text string)
}

// Prepare opens the project, builds its manager and writes it to the file named by out, so that
// Subject is complete. It reports the phases and the notes to w, and writes the progress of the
// compiler to the writer progress.
func Prepare(ctx context.Context, o Options, out string, progress io.Writer, w Observer) (*Project, error) {
	p, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	told := 0
	tell := func() {
		// If the user gives the command without its installation, notes about what the
		// project lacks are of no interest.
		for ; told < len(p.Notes) && (len(o.Command) == 0 || o.installs() || o.AllNotes); told++ {
			w.Note(p.Notes[told])
		}
	}
	tell()
	if hint := p.bareHint(); hint != "" {
		w.Note(hint)
	}
	if o.Opened != nil {
		if err := o.Opened(p); err != nil {
			return nil, err
		}
	}
	if err := p.complete(ctx, out, progress, w); err != nil {
		return nil, err
	}
	tell() // notes that result from the manager's flags
	if len(o.Election) > 0 {
		p.Subject.Election = o.Election
	}
	return p, nil
}

// complete completes Subject. It builds the manager, unless that was done before, or the user gives a
// command.
func (p *Project) complete(ctx context.Context, out string, progress io.Writer, w Observer) error {
	switch o := p.options; {
	case o.Built != "":
		return p.Complete(ctx, o.Built)
	case len(o.Command) == 0:
		w.Phase("building " + p.Name)
	case !p.merges():
		return nil
	}
	return p.Build(ctx, out, progress)
}

// Open reads the entire project, or only the manifests if the options name a command and
// its CRDs or its complete installation. It looks up the command as a shell does.
func Open(ctx context.Context, o Options) (*Project, error) {
	if len(o.Command) == 0 {
		return Load(ctx, o)
	}
	program, err := lookPath(o.Command[0])
	if err != nil {
		return nil, fmt.Errorf("cannot start the controller %s: %w; give an executable after --", o.Command[0], err)
	}
	o.Command = append([]string{program}, o.Command[1:]...)
	if o.CRDs != "" || o.installs() {
		return FromManifests(ctx, o)
	}
	return Load(ctx, o)
}

// lookPath returns the absolute path of an executable, which is given by its path or by a
// name on the PATH.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", err
	}
	return filepath.Abs(path)
}

// MainFile returns the controller's main.go, relative to Dir, or "".
func (p *Project) MainFile() string {
	if p.Main == "" {
		return ""
	}
	return filepath.ToSlash(filepath.Join(p.Main, "main.go"))
}

// RoleFile returns the first of the files that contain roles of the controller, or "" if
// there is none.
func (p *Project) RoleFile() string {
	file := ""
	for _, role := range p.Subject.Roles {
		file = cmp.Or(file, role.File)
	}
	return file
}

// Scenarios makes scenarios from the project's samples and schemas, and returns
// notes about those that could not be made. It returns at least one scenario or
// an error.
func (p *Project) Scenarios(seed uint64) ([]*scenario.Scenario, []string, error) {
	if len(p.Samples) == 0 {
		return nil, nil, fmt.Errorf("there are no samples from which to generate scenarios; %sput some into config/samples, name others with --samples, or write a scenario and name it with --scenario", p.sampleHint())
	}
	crds, err := p.crds()
	if err != nil {
		return nil, nil, err
	}
	all, notes, err := scenario.Generate(p.Samples, crds, scenario.GenerateOptions{Primary: p.Subject.Primary, Seed: seed})
	if err == nil && len(all) == 0 && p.options.Samples != "" {
		// PROJECT does not always list every reconciled kind, and the user chose the samples.
		all, notes, err = scenario.Generate(p.Samples, crds, scenario.GenerateOptions{Seed: seed})
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no scenario can be generated from the samples: %s; fix a sample, or write a scenario and name it with --scenario", strings.Join(notes, "; "))
	}
	return all, notes, err
}

// Trials returns the inputs to try with the samples.
func (p *Project) Trials(seed uint64) ([]*scenario.Trials, []string, error) {
	crds, err := p.crds()
	if err != nil {
		return nil, nil, err
	}
	all, notes, err := scenario.GenerateTrials(p.Samples, crds, scenario.GenerateOptions{Primary: p.Subject.Primary, Seed: seed})
	if err == nil && len(all) == 0 && p.options.Samples != "" {
		all, notes, err = scenario.GenerateTrials(p.Samples, crds, scenario.GenerateOptions{Seed: seed})
	}
	return all, notes, err
}

// Paths returns scenarios, without faults, that reach states of the samples on different ways.
func (p *Project) Paths(seed uint64) ([]*scenario.Scenario, []string, error) {
	crds, err := p.crds()
	if err != nil {
		return nil, nil, err
	}
	all, notes, err := scenario.GeneratePaths(p.Samples, crds, scenario.GenerateOptions{Primary: p.Subject.Primary, Seed: seed})
	if err == nil && len(all) == 0 && p.options.Samples != "" {
		all, notes, err = scenario.GeneratePaths(p.Samples, crds, scenario.GenerateOptions{Seed: seed})
	}
	return all, notes, err
}

// crds returns the project's CRDs, decoded.
func (p *Project) crds() (all []*apiextensionsv1.CustomResourceDefinition, err error) {
	for _, object := range p.Subject.Install {
		if !isCRD(document{Object: object}) {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
			return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", object.GetName(), err)
		}
		all = append(all, crd)
	}
	return all, nil
}
