package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"golang.org/x/mod/modfile"
	clientargs "k8s.io/code-generator/cmd/client-gen/args"
	clients "k8s.io/code-generator/cmd/client-gen/generators"
	informerargs "k8s.io/code-generator/cmd/informer-gen/args"
	informers "k8s.io/code-generator/cmd/informer-gen/generators"
	listerargs "k8s.io/code-generator/cmd/lister-gen/args"
	listers "k8s.io/code-generator/cmd/lister-gen/generators"
	"k8s.io/code-generator/pkg/util"
	"k8s.io/gengo/v2"
	"k8s.io/gengo/v2/generator"
	"k8s.io/gengo/v2/namer"
	"k8s.io/gengo/v2/parser"
	"k8s.io/klog/v2"
)

// ClientsVersion is the version of k8s.io/code-generator whose generators are used.
const ClientsVersion = "v0.37.0"

// clientGenerators lists the programs of k8s.io/code-generator that koboshi generate replaces.
var clientGenerators = map[string]func() *clientRun{
	"client-gen": newClientGen, "lister-gen": newListerGen, "informer-gen": newInformerGen,
}

// A clientRun is a call of one of these programs.
type clientRun struct {
	call          Call
	flags         *pflag.FlagSet
	validate      func() error
	output        *string // the folder for the files
	header        *string // the file with the header
	packages      func() []string
	names         func() namer.NameSystems
	defaultSystem string
	targets       func(*generator.Context) []generator.Target
}

func newClientGen() *clientRun {
	a := clientargs.New()
	r := &clientRun{
		flags: pflag.NewFlagSet("client-gen", pflag.ContinueOnError), validate: a.Validate,
		output: &a.OutputDir, header: &a.GoHeaderFile,
		names: func() namer.NameSystems {
			return clients.NameSystems(util.PluralExceptionListToMapOrDie(a.PluralExceptions))
		},
		defaultSystem: clients.DefaultNameSystem(),
		targets:       func(c *generator.Context) []generator.Target { return clients.GetTargets(c, a) },
	}
	a.AddFlags(r.flags, "k8s.io/kubernetes/pkg/apis")
	r.packages = func() (packages []string) {
		for _, group := range a.Groups {
			for _, version := range group.Versions {
				packages = append(packages, version.Package)
			}
		}
		return packages
	}
	return r
}

func newListerGen() *clientRun {
	a := listerargs.New()
	r := &clientRun{
		flags: pflag.NewFlagSet("lister-gen", pflag.ContinueOnError), validate: a.Validate,
		output: &a.OutputDir, header: &a.GoHeaderFile,
		names: func() namer.NameSystems {
			return listers.NameSystems(util.PluralExceptionListToMapOrDie(a.PluralExceptions))
		},
		defaultSystem: listers.DefaultNameSystem(),
		targets:       func(c *generator.Context) []generator.Target { return listers.GetTargets(c, a) },
	}
	a.AddFlags(r.flags)
	r.packages = r.flags.Args
	return r
}

func newInformerGen() *clientRun {
	a := informerargs.New()
	r := &clientRun{
		flags: pflag.NewFlagSet("informer-gen", pflag.ContinueOnError), validate: a.Validate,
		output: &a.OutputDir, header: &a.GoHeaderFile,
		names: func() namer.NameSystems {
			return informers.NameSystems(util.PluralExceptionListToMapOrDie(a.PluralExceptions))
		},
		defaultSystem: informers.DefaultNameSystem(),
		targets:       func(c *generator.Context) []generator.Target { return informers.GetTargets(c, a) },
	}
	a.AddFlags(r.flags)
	r.packages = r.flags.Args
	return r
}

// parseClientCall parses the arguments of a call.
func parseClientCall(call Call) (*clientRun, error) {
	r := clientGenerators[generatorOf(call.Program)]()
	r.call = call
	r.flags.IntP("v", "v", 0, "the verbosity, which has no effect on the files")
	err := r.flags.Parse(call.Args)
	if err == nil {
		err = r.validate()
	}
	return r, err
}

// clients runs the generators of clients.
func (g *generation) clients(ctx context.Context, runs []*clientRun) error {
	for _, r := range runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := inFolder(r.call.Dir, func() error { return g.client(r) })
		if err := g.takeProblem(r.failed(err)); err != nil {
			return err
		}
	}
	return nil
}

// failed returns the error of a run with the position of its call.
func (r *clientRun) failed(err error) error {
	if err == nil {
		return nil
	}
	return atCall(r.call, fmt.Errorf("%s: %s", r.call.Program, oneLine(err.Error())))
}

// client runs one generator, whose folder is the current one. It reads the name of the program,
// writes files itself, and ends the process if something fails.
func (g *generation) client(r *clientRun) error {
	defer setEnv(r.call.Env)()
	if *r.header != "" {
		g.store.inputs[inDir(r.call.Dir, *r.header)] = true
	}
	return withoutExit(r.call.Program, func() error {
		parsed := parser.NewWithOptions(parser.Options{BuildTags: []string{gengo.StdBuildTag}})
		if err := parsed.LoadPackages(r.packages()...); err != nil {
			return err
		}
		types, err := generator.NewContext(parsed, r.names(), r.defaultSystem)
		if err != nil {
			return err
		}
		return g.intoStore(inDir(r.call.Dir, *r.output), func(folder string) error {
			*r.output = folder
			return types.ExecuteTargets(r.targets(types))
		})
	})
}

// solves reports whether writing the generated files solves a problem: the problem is in one of
// these files, or is the lack of a package that these files contain.
func (g *generation) solves(p Problem) bool {
	if p.File == "" {
		return false
	}
	file := inDir(g.dir, filepath.FromSlash(p.File))
	if _, ok := g.store.files[file]; ok {
		return true
	}
	root, err := moduleRoot(filepath.Dir(file))
	if err != nil {
		return false
	}
	module := modulePath(root)
	for generated := range g.store.files {
		folder, err := filepath.Rel(root, filepath.Dir(generated))
		if err == nil && slices.Contains(strings.Fields(p.Message), path.Join(module, filepath.ToSlash(folder))+";") {
			return true
		}
	}
	return false
}

// modulePath returns the path of the module in a folder.
func modulePath(root string) string {
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return ""
	}
	return modfile.ModulePath(data)
}

// intoStore calls write with a temporary folder, and stores each file that write creates there
// under its path in target.
func (g *generation) intoStore(target string, write func(folder string) error) error {
	folder, err := os.MkdirTemp("", "koboshi-generate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := errors.Join(markExpansions(target, folder), write(folder)); err != nil {
		return err
	}
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || len(data) == 0 {
			return err
		}
		rel, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		_, err = g.store.create(filepath.Join(target, rel)).Write(data)
		return err
	})
}

// markExpansions creates an empty file in the folder to for each file in which a person has
// declared methods of generated clients, because the generators check whether such files exist.
func markExpansions(from, to string) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_expansion.go") || entry.Name() == "generated_expansion.go" {
			return err
		}
		mark := filepath.Join(to, strings.TrimPrefix(path, from))
		if err := os.MkdirAll(filepath.Dir(mark), 0o777); err != nil {
			return err
		}
		return os.WriteFile(mark, nil, 0o600)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// withoutExit calls f while os.Args[0] is the name of a program. If klog would end the process,
// withoutExit returns an error instead.
func withoutExit(program string, f func() error) (err error) {
	var last string
	defer klog.CaptureState().Restore()
	klog.SetLogger(logr.New(lastMessage{&last}))
	name, exit := os.Args[0], klog.OsExit
	defer func() { os.Args[0], klog.OsExit = name, exit }()
	type ended struct{}
	os.Args[0], klog.OsExit = program, func(int) { panic(ended{}) }
	defer func() {
		switch reason := recover(); reason.(type) {
		case nil:
		case ended:
			err = errors.New(last)
		default:
			err = fmt.Errorf("k8s.io/code-generator %s failed at an unexpected type (%v); check that the code compiles", ClientsVersion, reason)
		}
	}()
	return f()
}

// lastMessage is a logger that only keeps the last message.
type lastMessage struct{ text *string }

func (lastMessage) Init(logr.RuntimeInfo)                  {}
func (lastMessage) Enabled(int) bool                       { return true }
func (l lastMessage) Info(_ int, text string, _ ...any)    { *l.text = text }
func (l lastMessage) Error(_ error, text string, _ ...any) { *l.text = text }
func (l lastMessage) WithValues(...any) logr.LogSink       { return l }
func (l lastMessage) WithName(string) logr.LogSink         { return l }

// setEnv sets environment variables, and returns a function that restores them.
func setEnv(env []string) (restore func()) {
	var undo []func()
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		old, existed := os.LookupEnv(name)
		_ = os.Setenv(name, value) // fails only for names that a shell would refuse too
		undo = append(undo, func() {
			if existed {
				_ = os.Setenv(name, old)
			} else {
				_ = os.Unsetenv(name)
			}
		})
	}
	return func() {
		for _, f := range slices.Backward(undo) {
			f()
		}
	}
}
