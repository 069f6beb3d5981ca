package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/deploy/order"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
	"github.com/koboshi-dev/koboshi/internal/programs"
	"github.com/koboshi-dev/koboshi/internal/programs/unpack"
	"github.com/koboshi-dev/koboshi/internal/project"
	"github.com/koboshi-dev/koboshi/internal/ship"
	"github.com/koboshi-dev/koboshi/internal/ship/verify"
)

// verifyTimeout limits each step of a verification.
const verifyTimeout = 2 * time.Minute

// canVerify returns an error if what is shipped cannot run on this machine.
func canVerify(platforms []v1.Platform) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("--verify runs the programs of the image in Linux namespaces, which %s does not have; omit it, or use a Linux virtual machine", runtime.GOOS)
	}
	if !slices.ContainsFunc(platforms, func(p v1.Platform) bool { return p.OS == "linux" && p.Architecture == runtime.GOARCH }) {
		return fmt.Errorf("--verify runs the image on this machine, so it needs linux/%s among the platforms; add it with --platform", runtime.GOARCH)
	}
	return nil
}

// These are the forms in which a version is installed.
const (
	asManifest = "install.yaml"
	asChart    = "helm"
)

// release is the name and the namespace of the chart's release in a verification. They are not those in
// install.yaml, so that a name that the chart does not replace is found.
const release = "verify"

// verifyFlags are the flags of koboshi ship that only --verify uses.
var verifyFlags = []string{"samples", "scenario", "args", "upgrade-from", "verify-budget"}

// combineVerify returns an error if a flag has no effect.
func (f *shipFlags) combineVerify(fs *pflag.FlagSet) error {
	for _, name := range verifyFlags {
		if fs.Changed(name) && !f.verifies {
			return fmt.Errorf("--%s is for --verify; add it, or omit --%s", name, name)
		}
	}
	if f.scenario != "" && f.project.Samples != "" {
		return errors.New("--samples and --scenario both say what --verify applies; omit one of them")
	}
	return nil
}

// verify installs each form of what was made in a plane, uninstalls it, and checks the program of the image.
func (f *shipFlags) verify(ctx context.Context, made shipped, p preflight, progress *shipProgress, messages *os.File) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	forms := []string{asManifest}
	if made.Chart != nil {
		forms = append(forms, asChart)
	}
	for _, form := range forms {
		o := verify.Options{
			Koboshi: self, Args: f.project.Args, Scenario: p.scenario, Timeout: verifyTimeout,
			Observer: &verifyProgress{shipProgress: progress, form: form},
		}
		if o.Version, err = made.version(form); err != nil {
			return err
		}
		if p.old != nil {
			old, err := p.old.version(form)
			if err != nil {
				return err
			}
			o.Old = &old
		}
		if err := verify.Run(ctx, o); err != nil {
			return fmt.Errorf("verifying %s: %w", form, err)
		}
	}
	if f.verifyBudget <= 0 {
		return nil
	}
	return f.checkShipped(ctx, self, made, messages)
}

// A preflight is what a verification needs besides the version that is shipped.
type preflight struct {
	old      *shipped // nil without an upgrade
	scenario *scenario.Scenario
	discard  func()
}

// preflight reads the scenario, and ships the old version, before anything is pushed.
func (f *shipFlags) preflight(ctx context.Context, p *project.Project, progress *shipProgress) (done preflight, err error) {
	done.discard = func() {}
	if !f.verifies {
		return done, nil
	}
	if f.scenario != "" {
		if done.scenario, err = founding(f.scenario); err != nil {
			return done, usageError{err}
		}
	}
	if f.upgradeFrom != "" {
		if done.old, done.discard, err = f.shipOld(ctx, progress); err != nil {
			return done, err
		}
		p = done.old.project // its samples are what users have
	}
	if f.scenario == "" {
		done.scenario = sampled(p)
	}
	return done, nil
}

// founding returns the part of the scenario in a file that deletes nothing.
func founding(file string) (*scenario.Scenario, error) {
	all, _, err := scenario.LoadAll([]string{file})
	if err != nil {
		return nil, err
	}
	if len(all) > 1 {
		return nil, fmt.Errorf("--scenario %s has %d scenarios, but only one can be performed in a control plane; name a file with one of them", file, len(all))
	}
	if s := all[0].Founding(false); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("--scenario %s begins with a deletion, so there is nothing to perform; name another scenario", file)
}

// sampled returns a scenario that applies the samples of a project.
func sampled(p *project.Project) *scenario.Scenario {
	var s scenario.Scenario
	for _, sample := range p.Samples {
		for _, o := range sample.Objects {
			s.Given = append(s.Given, scenario.Manifest{Object: o.Object})
		}
	}
	return &s
}

// shipTemp is the beginning of the names of folders with an old version.
const shipTemp = "koboshi-ship-"

// shipOld ships the version that --upgrade-from names into a temporary folder, which discard removes.
func (f *shipFlags) shipOld(ctx context.Context, progress *shipProgress) (old *shipped, discard func(), err error) {
	dir, clean, err := temporary(shipTemp)
	if err != nil {
		return nil, func() {}, err
	}
	defer func() {
		if err != nil {
			clean()
		}
	}()
	of := shipFlags{
		project: f.project, image: f.image, base: f.base, certs: f.certs, chart: f.chart,
		platforms: []string{"linux/" + runtime.GOARCH}, dir: filepath.Join(dir, "dist"),
	}
	of.project.Dir = f.upgradeFrom
	if info, err := os.Stat(f.upgradeFrom); err != nil || !info.IsDir() {
		folder, removeTree, err := worktree(ctx, f.project.Dir, f.upgradeFrom, filepath.Join(dir, "old"))
		if err != nil {
			return nil, func() {}, usageError{err}
		}
		removeAll := clean
		of.project.Dir, clean = folder, func() { removeTree(); removeAll() }
	}
	if old, err = of.shipIn(ctx, dir, progress); err != nil {
		return nil, func() {}, fmt.Errorf("the old version, %s: %w", f.upgradeFrom, err)
	}
	return old, clean, nil
}

// shipIn ships an old version, with everything in a folder.
func (f *shipFlags) shipIn(ctx context.Context, dir string, progress *shipProgress) (*shipped, error) {
	o, err := f.options(ctx)
	if err != nil {
		return nil, err
	}
	// The cache for a temporary project would never be used again.
	o.Cache, o.Observer = filepath.Join(dir, "cache"), oldShipProgress{progress}
	result, err := ship.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	return &shipped{result, o.Project}, nil
}

// oldShipProgress shows the progress of shipping the old version, without notes: they suggest changes to the
// project, and the old version does not change any more.
type oldShipProgress struct{ *shipProgress }

func (p oldShipProgress) Built(program string, platform v1.Platform, took time.Duration) {
	p.shipProgress.Built(program+" of the old version", platform, took)
}

func (oldShipProgress) Note(string) {}

// shipped is a version of the operator as it was shipped.
type shipped struct {
	*ship.Result
	project *project.Project
}

// version returns what a verification installs in one of the forms.
func (s shipped) version(form string) (v verify.Version, err error) {
	if s.Install == "" {
		return v, errors.New("--verify needs install.yaml, which was not made, because no workload runs the manager")
	}
	v.Image = s.Image
	if container, _ := s.project.Container(); len(container.Command) > 0 {
		v.Program = container.Command[0]
	}
	if v.Layout, err = filepath.Abs(s.Layout); err != nil {
		return v, err
	}
	if form == asChart {
		v.Namespace = release
		v.Manifest, err = verify.Release(s.Chart.Dir, release, release)
	} else {
		v.Manifest, err = order.Read([]string{s.Install}, nil)
	}
	return v, err
}

// checkShipped runs koboshi check with the program of the image and the manifest.
func (f *shipFlags) checkShipped(ctx context.Context, self string, made shipped, messages *os.File) error {
	dir, remove, err := temporary(imagesTemp)
	if err != nil {
		return err
	}
	defer remove()
	layout, err := filepath.Abs(made.Layout)
	if err != nil {
		return err
	}
	set, err := unpack.All(programs.Set{{Image: made.Image, Path: layout}}, dir)
	if err != nil {
		return err
	}
	manifest, err := filepath.Abs(made.Install)
	if err != nil {
		return err
	}
	args := []string{"check", "--dir", f.project.Dir, "--manifests", manifest, "--budget", f.verifyBudget.String()}
	if f.project.Samples != "" {
		args = append(args, "--samples", f.project.Samples)
	}
	if f.scenario != "" {
		args = append(args, "--scenario", f.scenario)
	}
	for _, arg := range f.project.Args {
		args = append(args, "--args="+arg)
	}
	cmd := exec.CommandContext(ctx, self, append(args, "--", set[0].File())...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdout, cmd.Stderr = messages, messages // the standard output is for the result
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("verifying: koboshi check: %w", err)
	}
	return nil
}

// verifyProgress shows the steps of the verification of one form, and what it waits for.
type verifyProgress struct {
	*shipProgress
	form string
	said string
}

func (p *verifyProgress) Step(name string, took time.Duration) {
	p.say("verify %s: %-15s ok, %.1f s", p.form, name, took.Seconds())
}

func (p *verifyProgress) Note(text string) { p.say("verify %s: %s", p.form, text) }

func (p *verifyProgress) Waiting(pending []ready.Pending) {
	for _, o := range pending[:min(len(pending), 1)] {
		if text := o.String(); text != p.said {
			p.said = text
			p.Note("waiting for " + text)
		}
	}
}

var _ verify.Observer = (*verifyProgress)(nil)
