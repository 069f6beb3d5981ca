package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/devloop/apply"
	"github.com/koboshi-dev/koboshi/internal/gobuild"
	"github.com/koboshi-dev/koboshi/internal/manifest"
	"github.com/koboshi-dev/koboshi/internal/project"
	"github.com/koboshi-dev/koboshi/internal/served"
)

// A shownError has a text of its own, which is shown as it is.
type shownError struct{ summary, text string }

func (e *shownError) Error() string { return e.summary }

// Shown returns the text.
func (e *shownError) Shown() string { return e.text }

// Generate implements devloop.Stages.
func (s *Session) Generate(ctx context.Context) ([]string, error) {
	if !generates(s.o.Project.Dir) {
		return nil, nil
	}
	o := manifest.Options{Dir: s.o.Project.Dir, Cache: s.o.Cache}
	result, err := manifest.Generate(ctx, o)
	if err != nil {
		return nil, err
	}
	if mistakes := result.Problems; len(mistakes) > 0 {
		// A wrong marker that a project already has must not prevent its development.
		o.Lenient = true
		if result, err = manifest.Generate(ctx, o); err != nil {
			return nil, err
		}
		if len(result.Problems) > 0 {
			return nil, s.problems(ctx, result)
		}
		s.showOnce(mistakes)
	}
	return s.written(result)
}

// written returns the files that were written, relative to the project's folder.
func (s *Session) written(result *manifest.Result) (written []string, err error) {
	dir, err := filepath.EvalSymlinks(s.o.Project.Dir)
	if err != nil {
		return nil, err
	}
	for _, file := range result.Files {
		if file.Action == manifest.Unchanged {
			continue
		}
		name, err := filepath.Rel(dir, filepath.Join(result.Dir, filepath.FromSlash(file.Path)))
		if err != nil {
			return nil, err
		}
		written = append(written, filepath.ToSlash(name))
	}
	return written, nil
}

// showOnce shows the mistakes in markers that have not been shown yet.
func (s *Session) showOnce(mistakes []manifest.Problem) {
	for _, mistake := range mistakes {
		if text := mistake.String(); !s.noted[text] {
			s.noted[text] = true
			s.o.Observer.Text(text + "\n")
		}
	}
}

// generates reports whether files of the project are generated from its code.
func generates(dir string) bool {
	for _, name := range []string{"PROJECT", "Makefile"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// problems returns an error that lists the problems found while generating. If the code does not
// compile, it returns the output of the compiler instead.
func (s *Session) problems(ctx context.Context, result *manifest.Result) error {
	if s.project != nil {
		if err := s.Build(ctx); err != nil {
			return err
		}
	}
	var text strings.Builder
	for _, p := range result.Problems {
		text.WriteString(p.String() + "\n")
	}
	return &shownError{"nothing was generated, because of the problems above", text.String()}
}

// buildFlags returns the flags of a release, so that the compiler's cache serves both. For a
// debugger, paths and symbols stay, and the project's own packages are not optimized.
func buildFlags(debug bool) []string {
	if debug {
		return []string{"-buildvcs=false", "-trimpath=false", "-gcflags=./...=-N -l"} // GOFLAGS may contain -trimpath
	}
	return gobuild.ReleaseFlags()
}

// Build implements devloop.Stages.
func (s *Session) Build(ctx context.Context) error {
	if s.project.Main == "" {
		return errors.New("there is no main package; name its folder with --main")
	}
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("%w; install Go, or use --watch and a command after -- to start a program that is built elsewhere", err)
	}
	if files, _ := filepath.Glob(filepath.Join(s.project.Dir, s.project.Main, "*.go")); len(files) == 0 {
		if p, err := s.open(ctx); err == nil { // the main package has been moved
			s.project.Main = p.Main
		}
	}
	dir, folder := s.project.MainModule()
	out := filepath.Join(s.o.Dir, "manager")
	target := "./" + filepath.ToSlash(folder)
	more, err := s.instrument(ctx, dir, target)
	if err != nil {
		return err
	}
	args := slices.Concat([]string{"go", "build", "-o", out}, buildFlags(s.o.Debug), more, []string{target})
	var printed bytes.Buffer
	compiler, err := process.Start(ctx, process.Spec{Command: args, Dir: dir, Env: gobuild.Environment(), Output: &printed})
	if err != nil {
		return err
	}
	code, _ := compiler.Exit()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case code != 0:
		return &shownError{"the code does not compile", printed.String()}
	}
	s.program = out
	return nil
}

// Apply implements devloop.Stages.
func (s *Session) Apply(ctx context.Context) (restart bool, err error) {
	p, err := s.open(ctx)
	if err != nil {
		return false, err
	}
	objects := s.objects(p)
	if err := s.allowed(ctx, objects); err != nil {
		return false, err
	}
	s.recordGrants(p)
	result, err := s.installed.Apply(ctx, objects)
	if err != nil && s.crashed() && s.Restart(ctx) == nil {
		// The webhooks of the manager may have refused the objects, because the manager had ended.
		var more apply.Result
		more, err = s.installed.Apply(ctx, objects)
		result.Applied, result.Pruned = append(result.Applied, more.Applied...), append(result.Pruned, more.Pruned...)
	}
	s.showResult(result)
	now := crdsOf(objects)
	if err != nil {
		for name, crd := range now { // some may have been applied
			if slices.Contains(result.Applied, "CustomResourceDefinition "+name) {
				s.crds[name] = crd
			}
		}
		return false, err
	}
	if difference := s.crds.diff(now); difference != "" {
		s.o.Observer.Text(difference)
	}
	s.crds = now
	before := s.project
	if s.program == "" && len(s.o.Project.Command) == 0 {
		s.project = p
		return false, nil
	}
	if err := p.Complete(ctx, s.program); err != nil {
		return false, err // the next round compares with the same project again
	}
	s.project = p
	return !sameStart(before.Subject, p.Subject), nil
}

// crashed reports whether the manager has been started, and has ended.
func (s *Session) crashed() bool {
	s.mu.Lock()
	c := s.child
	s.mu.Unlock()
	return c != nil && c.isOver()
}

// showResult passes on what was deleted. The line about the round shows everything else.
func (s *Session) showResult(result apply.Result) {
	if len(result.Pruned) > 0 {
		s.o.Observer.Note("deleted " + strings.Join(result.Pruned, ", ") + ", because the manifests no longer contain it")
	}
}

// sameStart reports whether two subjects are started in the same way.
func sameStart(a, b subject.Subject) bool {
	type start struct {
		command, env []string
		identity     subject.ServiceAccount
		webhook      subject.Webhook
		files        []subject.Mount
	}
	of := func(s subject.Subject) start { return start{s.Command, s.Env, s.Identity, s.Webhook, s.Files} }
	return reflect.DeepEqual(of(a), of(b))
}

// objects returns the objects that Apply applies: in a plane, the complete installation; in a
// cluster that exists already, only the CRDs, because everything else belongs to the installation
// there.
func (s *Session) objects(p *project.Project) []unstructured.Unstructured {
	if s.o.Cluster == nil {
		return s.pointed(slices.Concat(p.Subject.Install, p.Subject.Webhooks))
	}
	return slices.DeleteFunc(slices.Clone(p.Subject.Install), func(o unstructured.Unstructured) bool { return !served.IsCRD(&o) })
}

// Samples implements devloop.Stages.
func (s *Session) Samples(ctx context.Context) error {
	if s.o.Cluster != nil {
		return nil
	}
	p, err := s.open(ctx)
	if err != nil {
		return err
	}
	var objects []unstructured.Unstructured
	for _, sample := range p.Samples {
		objects = append(objects, sample.Objects...)
	}
	result, err := s.samples.Apply(ctx, objects)
	s.showResult(result)
	return err
}

// pointed makes the webhooks of objects call the listener.
func (s *Session) pointed(objects []unstructured.Unstructured) []unstructured.Unstructured {
	return subject.PointWebhooks(objects, s.listener.URL(""), s.ca.CertPEM())
}

// connect returns a client with the rights of config.
func connect(config *rest.Config) (apply.Client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = "koboshi-dev"
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return apply.Client{}, err
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return apply.Client{}, err
	}
	return apply.Client{Dynamic: client, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))}, nil
}
