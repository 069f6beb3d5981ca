package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// defaultFindings is where findings are kept, to be run first the next time.
const defaultFindings = ".koboshi/findings"

// checkFlags are the flags of koboshi check as they were given.
type checkFlags struct {
	// what is checked
	dir       string
	project   project.Options
	args, env []string
	election  []string
	scenarios []string
	command   []string
	values    map[string][]string // what was given of subjectFlags
	// how
	profile     string
	oldServer   bool
	seed        uint64
	budget      time.Duration
	shard       string
	workers     int
	stopAtFirst bool
	kinds       []string
	// what is said
	output   []string
	findings string
	planOnly bool
	verbose  bool
}

func newCheck(stdio Stdio) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check [flags] [-- controller args...]",
		Short: "Knock a controller over at every write, and see whether it gets up",
		Long: `Knock a controller over at every write, and see whether it gets up.

In a kubebuilder-layout project nothing has to be written: the manager is built,
planes are started, definitions, RBAC and webhooks come from config/, scenarios
from config/samples and the schemas. What the controller does without a fault is
learnt; then it is run again and again, each time knocked over once: killed
before or after a write, an answer lost, a conflict, an error, a watch that lags,
a change while it is down, an object that somebody else deletes.

Any other controller, in any language, is given after --, with its definitions
and scenarios; it finds the cluster by KUBECONFIG.

Findings are run again before they are reported, and kept as files that
koboshi check replay runs again; they go first the next time.

Exit code: 0 clean, 1 findings, 2 could not check.`,
		Example: `  koboshi check
  koboshi check --budget 2m -o junit=report.xml -o html=report.html
  koboshi check --shard 1/4 -o json=part-1.json
  koboshi check --crds crds/ --scenario create.yaml -- python3 controller.py
  koboshi check replay .koboshi/findings/DIVERGED-life-create-1a2b3c4d.json
  koboshi check report part-1.json part-2.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at > 0 || at < 0 && len(args) > 0 {
				return usageError{fmt.Errorf("%q is no flag; put the controller's command after --, see %s --help", args[0], cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.command = args
			return f.run(cmd.Context(), cmd.Flags(), stdio)
		},
	}
	f.register(cmd.Flags())
	cmd.AddCommand(newCheckReplay(stdio), newCheckReport(stdio), newCheckSchema(stdio), newCheckLab(stdio))
	return cmd
}

func (f *checkFlags) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.dir, "dir", ".", "folder of the project")
	fs.StringVar(&f.project.Main, "main", "", "folder of the manager's main package (default: found)")
	fs.StringVar(&f.project.Kustomization, "kustomization", "", "kustomization of the whole installation (default: config/default)")
	fs.StringVar(&f.project.CRDs, "crds", "", "file or folder of CustomResourceDefinitions")
	fs.StringVar(&f.project.RBAC, "rbac", "", "file or folder of the service account, roles and bindings")
	fs.StringVar(&f.project.Webhooks, "webhooks", "", "file or folder of webhook configurations")
	fs.IntVar(&f.project.WebhookPort, "webhook-port", 0, "port at which the controller serves webhooks (default: found, or 9443)")
	fs.StringVar(&f.project.Samples, "samples", "", "file or folder of samples (default: config/samples)")
	fs.StringArrayVar(&f.args, "args", nil, "argument to add to the manager's; may be repeated")
	fs.StringArrayVar(&f.env, "env", nil, "NAME=VALUE to add to its environment; may be repeated")
	fs.StringArrayVar(&f.election, "election", nil, "argument that makes it elect a leader (default: found); may be repeated")
	fs.StringArrayVar(&f.scenarios, "scenario", nil, "file of scenarios, instead of those made from samples; may be repeated")
	fs.StringVar(&f.profile, "profile", "", "the plane's controllers: api, gc, workloads or full (default: by what it may write)")
	fs.BoolVar(&f.oldServer, "old-server", false, "an API server without streaming lists, so that stale lists are legal")
	fs.Uint64Var(&f.seed, "seed", 0, "seed of all random choices (default: a new one, which is printed)")
	fs.DurationVar(&f.budget, "budget", 0, "how long faults may be run, such as 2m (default: until all are done)")
	fs.StringVar(&f.shard, "shard", "", "run one part of the plan, as 1/4")
	fs.IntVar(&f.workers, "workers", 0, "planes at once (default: as many as the machine has room for)")
	fs.BoolVar(&f.stopAtFirst, "stop-at-first", false, "end at the first finding")
	fs.StringSliceVar(&f.kinds, "faults", nil, "only faults of these kinds, such as kill-lost,conflict")
	fs.StringArrayVarP(&f.output, "output", "o", nil, "text, json, junit, sarif or html, with =FILE to write it there; may be repeated")
	fs.StringVar(&f.findings, "findings", defaultFindings, "folder that keeps findings")
	fs.BoolVar(&f.planOnly, "plan", false, "learn, print the plan, and run nothing")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "say more: what is masked, what was not applied")
}

func (f *checkFlags) run(ctx context.Context, fs *pflag.FlagSet, stdio Stdio) error {
	outputs, err := parseOutputs(f.output)
	if err != nil {
		return usageError{err}
	}
	o, err := f.options(fs)
	if err != nil {
		return usageError{err}
	}
	saved, err := report.LoadFindings(f.findings)
	if err != nil {
		return usageError{err}
	}
	o.First = map[string][]fault.Fault{}
	for _, s := range saved {
		if s.Finding.Fault != nil {
			o.First[s.Scenario.Name] = append(o.First[s.Scenario.Name], *s.Finding.Fault)
		}
	}
	o.PlanOnly = f.planOnly
	result, err := f.check(ctx, o, stdio)
	if err != nil {
		return couldNot(ctx, err)
	}
	if f.planOnly {
		return writePlan(stdio, result)
	}
	if err := f.keep(result); err != nil {
		return err
	}
	if err := outputs.write(result, f.verbose, stdio); err != nil {
		return err
	}
	return exitOf(result.Report)
}

// exitOf turns findings into the exit code.
func exitOf(r *report.Report) error {
	if code := r.ExitCode(); code != exitOK {
		return exitStatus(code)
	}
	return nil
}

// couldNot is a check that says nothing of the controller: exit code 2.
func couldNot(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = errors.New("interrupted; nothing is said of the controller")
	}
	return usageError{fmt.Errorf("could not check: %w", err)}
}

// options checks the flags as a whole, and reads what they name.
func (f *checkFlags) options(fs *pflag.FlagSet) (check.Options, error) {
	o := check.Options{
		Profile: f.profile, OldServer: f.oldServer, Seed: f.seed, Budget: f.budget, Workers: f.workers,
		StopAtFirst: f.stopAtFirst, Command: "koboshi check " + strings.Join(given(fs, f.command), " "),
	}
	if !fs.Changed("seed") {
		o.Seed = rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(os.Getpid()))).Uint64N(1 << 32)
	}
	if f.workers < 0 || f.workers > 64 {
		return o, fmt.Errorf("--workers is %d; it may be 1 to 64, or 0 for as many as the machine has room for", f.workers)
	}
	if port := f.project.WebhookPort; port < 0 || port > 65535 {
		return o, fmt.Errorf("--webhook-port is %d; it may be 1 to 65535, or 0 for the one that is found", port)
	}
	f.values = map[string][]string{}
	for _, name := range subjectFlags {
		if flag := fs.Lookup(name); flag.Changed {
			f.values[name] = valuesOf(flag)
		}
	}
	var err error
	if o.Shard, o.Shards, err = parseShard(f.shard); err != nil {
		return o, err
	}
	if o.Faults, err = parseKinds(f.kinds); err != nil {
		return o, err
	}
	o.Files = map[string]string{}
	for _, file := range f.scenarios {
		scenarios, err := scenario.Load(file)
		if err != nil {
			return o, err
		}
		for _, sc := range scenarios {
			inlined, err := sc.Inline()
			if err != nil {
				return o, err
			}
			if slices.ContainsFunc(o.Scenarios, func(other *scenario.Scenario) bool { return other.Name == sc.Name }) {
				return o, fmt.Errorf("%s: there is another scenario %q; each needs a name of its own", file, sc.Name)
			}
			o.Scenarios = append(o.Scenarios, inlined)
			o.Files[sc.Name] = file
		}
	}
	return o, nil
}

func parseShard(text string) (i, n int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	first, second, ok := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(first)
	n, err2 := strconv.Atoi(second)
	if !ok || err1 != nil || err2 != nil || i < 1 || i > n {
		return 0, 0, fmt.Errorf("--shard is %q; say which part of how many, as 1/4", text)
	}
	return i, n, nil
}

func parseKinds(names []string) (kinds []fault.Kind, err error) {
	for _, name := range names {
		if !slices.Contains(fault.Kinds(), fault.Kind(name)) {
			return nil, fmt.Errorf("--faults: there is no kind %q; there are %v", name, fault.Kinds())
		}
		kinds = append(kinds, fault.Kind(name))
	}
	return kinds, nil
}

// given are the flags that were set, as a person would type them.
func given(fs *pflag.FlagSet, command []string) (args []string) {
	fs.Visit(func(flag *pflag.Flag) {
		for _, value := range valuesOf(flag) {
			args = append(args, "--"+flag.Name+"="+value)
		}
	})
	if len(command) > 0 {
		args = append(append(args, "--"), command...)
	}
	return args
}

func valuesOf(flag *pflag.Flag) []string {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{flag.Value.String()}
}

// subjectFlags are those of the flags that say what is checked and in which
// world, for a finding's file.
var subjectFlags = []string{
	"dir", "main", "kustomization", "crds", "rbac", "webhooks", "webhook-port", "samples", "args", "env", "election", "profile", "old-server",
}

// check does it, with progress.
func (f *checkFlags) check(ctx context.Context, o check.Options, stdio Stdio) (*check.Result, error) {
	tty := isTerminal(stdio.Err)
	progress := report.NewProgress(stdio.Err, report.ProgressOptions{TTY: tty, Color: tty && os.Getenv("NO_COLOR") == "", Width: widthOf(stdio.Err)})
	defer progress.Close()
	dir, err := os.MkdirTemp("", "koboshi-check-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	o.Dir, o.Observer = dir, progress
	if err := f.findSubject(ctx, &o, stdio, progress); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o.Program = []string{program, "check", "lab"}
	return check.Run(ctx, o)
}

// findSubject reads the project or the manifests, builds the manager, and makes
// scenarios if none are given.
func (f *checkFlags) findSubject(ctx context.Context, o *check.Options, stdio Stdio, progress *report.Progress) error {
	p, err := f.readProject(ctx)
	if err != nil {
		return err
	}
	told := 0
	tell := func() {
		for ; told < len(p.Notes) && (len(f.command) == 0 || f.verbose); told++ {
			progress.Note(p.Notes[told])
		}
	}
	tell()
	if len(f.command) == 0 {
		progress.Phase("building " + p.Name)
		if err := p.Build(ctx, filepath.Join(o.Dir, "manager"), stdio.Err); err != nil {
			return err
		}
		tell() // what its flags have shown
	}
	o.Subject = p.Subject
	o.Subject.Name = p.Name
	o.Sources = sourcesOf(p)
	if len(f.election) > 0 {
		o.Subject.Election = f.election
	}
	if o.Profile == "" {
		o.Profile = profileFor(o.Subject)
	}
	if len(o.Scenarios) > 0 {
		return nil
	}
	o.Generated = true
	o.Scenarios, err = scenariosOf(p, o.Seed, progress)
	return err
}

func (f *checkFlags) readProject(ctx context.Context) (*project.Project, error) {
	options := f.project
	options.Dir, options.Args, options.Env = f.dir, f.args, f.env
	if len(f.command) == 0 {
		return project.Load(ctx, options)
	}
	var err error
	if options.Command, err = absolute(f.command); err != nil {
		return nil, err
	}
	if options.CRDs != "" {
		return project.FromManifests(options)
	}
	return project.Load(ctx, options)
}
